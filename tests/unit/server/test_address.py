"""The address that `serve` and `up` print."""

from __future__ import annotations

from a2a_project.management.commands.serve import Address
from tests.support.rows import rows


@rows(
    "host, url",
    [
        ("0.0.0.0", "http://localhost:8000/"),  # noqa: S104 - printed only
        ("::", "http://[::1]:8000/"),
        ("::1", "http://[::1]:8000/"),
        ("agents.example", "http://agents.example:8000/"),
    ],
)
def test_a_wildcard_is_printed_as_a_name_that_answers(host: str, url: str) -> None:
    """The wildcard of IPv6 does not answer at 127.0.0.1, which `localhost` may be."""
    assert Address(host, 8000).url == url
