"""What `manage.py check` says of callers, and what a process says of them when it begins to serve."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from a2a_tasks.access.checks import check_callers
from a2a_tasks.access.startup_notice import say_who_may_come


def said() -> set[str]:
    return {str(message.id) for message in check_callers()}


class TestChecks:
    def test_say_nothing_of_a_host_as_it_comes(self, settings: Any) -> None:
        settings.A2A_ANONYMOUS = "auto"
        for embedded in (True, False):
            settings.A2A_EMBEDDED = embedded
            assert said() == set()

    def test_say_that_a_host_of_production_is_open(self, settings: Any) -> None:
        settings.A2A_ANONYMOUS, settings.A2A_EMBEDDED = "1", False
        assert said() == {"a2a_tasks.W021"}

    def test_name_a_rate_that_cannot_be_read(self, settings: Any) -> None:
        settings.A2A_RATE_PER_TENANT = "often"
        assert said() == {"a2a_tasks.E042"}

    def test_say_that_passwords_may_be_tried_without_end(self, settings: Any) -> None:
        settings.A2A_BASIC, settings.A2A_RATE_WRONG_CREDENTIALS = True, ""
        assert said() == {"a2a_tasks.W042"}
        settings.A2A_RATE_WRONG_CREDENTIALS = "1/s"
        assert said() == set()

    def test_say_that_nobody_can_come(self, settings: Any) -> None:
        settings.A2A_API_KEYS = False
        assert said() == {"a2a_tasks.W022"}

    @pytest.mark.parametrize(
        ("changed", "expected"),
        [
            ({}, set()),
            ({"JWT_AUDIENCE": ""}, {"a2a_tasks.E025"}),
            ({"JWT_AUDIENCE": "", "PUBLIC_URL": "https://h"}, set()),
            ({"JWT_ALGORITHMS": "HS256"}, {"a2a_tasks.E024"}),
            ({"JWT_ALGORITHMS": "none"}, {"a2a_tasks.E024"}),
            ({"JWT_ALGORITHMS": ""}, {"a2a_tasks.E024"}),
            ({"JWT_ISSUER": "http://login.example.com"}, {"a2a_tasks.E026"}),
            ({"JWT_ISSUER": "login.example.com"}, {"a2a_tasks.E026"}),
            ({"JWT_ISSUER": "http://127.0.0.1:9/realm"}, set()),
            ({"JWT_ISSUER": "https://login.corp:8443/realm"}, set()),
            ({"JWT_ISSUER": "https://10.0.0.7/realm"}, set()),
            ({"JWT_JWKS_URL": "ftp://x.example"}, {"a2a_tasks.E026"}),
            ({"JWT_PROXY": "x"}, {"a2a_tasks.E026"}),
            ({"JWT_CA_BUNDLE": "/nowhere.pem"}, {"a2a_tasks.E027"}),
            ({"MTLS_PEERS": "10.0.0.0/8, proxy"}, {"a2a_tasks.E028"}),
            ({"METRICS_PEERS": "10.0.0.0/8, prometheus"}, {"a2a_tasks.E030"}),
            ({"MTLS_PEERS": "10.0.0.1", "MTLS_SCOPES": 'a "b"'}, {"a2a_tasks.E029"}),
        ],
        ids=str,
    )
    def test_find_what_cannot_work(
        self, settings: Any, changed: dict[str, str], expected: set[str]
    ) -> None:
        good = {"JWT_ISSUER": "https://login.example.com", "JWT_AUDIENCE": "api://x"}
        for name, value in {**good, **changed}.items():
            setattr(settings, f"A2A_{name}", value)
        assert said() == expected


class TestTheStart:
    async def test_says_aloud_that_anybody_may_come(
        self, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.A2A_ANONYMOUS = "1"
        await say_who_may_come()
        assert [(r.levelno, "EVERYONE" in r.message) for r in caplog.records] == [
            (logging.WARNING, True)
        ]

    async def test_says_what_callers_may_show(
        self, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        settings.A2A_JWT_ISSUER = "https://login.example.com"
        await say_who_may_come()
        assert "bearer, apiKey" in caplog.text

    async def test_says_which_agents_were_granted_to_a_few(
        self, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        await say_who_may_come()
        assert "granted" not in caplog.text
        settings.A2A_GRANTS = "listed"
        await say_who_may_come()
        assert "(manage.py grants): demo" in caplog.text
