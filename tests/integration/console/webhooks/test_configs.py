"""What the pages of webhooks say alike."""

from __future__ import annotations

import pytest

from a2a_console.webhooks.configs import redact_url


class TestAURL:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("https://a.example/x", "https://a.example/x"),
            ("https://a.example/x?key=abc&for=alice", "https://a.example/x?key=…&for=…"),
            ("https://a.example/x?abc", "https://a.example/x?…"),
            ("https://a.example/x?a=&b=1#abc", "https://a.example/x?b=…"),
        ],
    )
    def test_is_shown_without_what_its_query_says(self, url: str, shown: str) -> None:
        assert redact_url(url) == shown
