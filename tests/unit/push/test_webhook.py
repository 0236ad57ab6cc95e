"""What a webhook may be: its secrets and headers are bounded together, and none begins another header."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from a2a_push.operations.webhook import MAX_ID_LENGTH, MAX_SECRET_LENGTH, registrable
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.values import PushConfig
from tests.support.rows import rows

URL = "https://hooks.example.com/a2a"
FULL = "x" * MAX_SECRET_LENGTH


def violations(**said: Any) -> dict[str, str]:
    """The members that are wrong, with the reasons."""
    try:
        registrable(PushConfig(**{"url": URL, **said}), "task-1", "v10")
    except InvalidParams as fault:
        return dict(fault.violations)
    return {}


@rows(
    "said",
    [
        {"token": FULL},
        {"credentials": FULL},
        {"schemes": (FULL,)},
        {"headers": {FULL[1:]: "v"}},
        {"headers": {"n": FULL[1:]}},
        {"token": FULL[4:], "credentials": "c", "schemes": ("s",), "headers": {"n": "v"}},
    ],
)
def test_secrets_and_headers_are_bounded_together(said: dict[str, Any]) -> None:
    assert violations(**said) == {}
    longer = {**said, "token": said.get("token", "") + "y"}
    assert violations(**longer).keys() == {"authentication"}


@rows(
    ("said", "member"),
    [
        ({"id": "i" * (MAX_ID_LENGTH + 1)}, "id"),
        ({"id": "a\x00"}, "id"),
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"token": "a\nb"}, "token"),
        ({"credentials": "a\r\nX-B: c"}, "authentication.credentials"),
        ({"schemes": ("a b",), "dialect": "v03"}, "authentication.schemes"),
        ({"headers": {"a b": "c"}}, "headers"),
        ({"headers": {"a": "b\x7f"}}, "headers"),
    ],
)
def test_what_would_change_a_request_is_named(said: dict[str, Any], member: str) -> None:
    assert violations(**said).keys() == {member}


@pytest.mark.parametrize("name", ["token", "credentials"])
def test_a_tab_within_a_value_is_allowed(name: str) -> None:
    assert violations(**{name: "a\tb"}) == {}


RAW = base64.b64encode(b"s" * 32).decode()


@rows(
    "token",
    [
        f"whsec_{RAW}",
        f"whsec_{RAW.rstrip('=')}",
        f"whsec_{RAW} whsec_{RAW}",
        "whsec_" + base64.urlsafe_b64encode(b"\xff" * 24).decode(),
        "an ordinary token, of wh and sec",
    ],
)
def test_a_secret_or_an_ordinary_token_is_accepted(token: str) -> None:
    assert violations(token=token) == {}


@rows(
    "token",
    [
        "whsec_" + base64.b64encode(b"s" * 16).decode(),
        "whsec_" + base64.b64encode(b"s" * 96).decode(),
        f"v1,whsec_{RAW}",
        f"WHSEC_{RAW}",
        f"whsec_{RAW} whsec_hush",
        f"whsec_{RAW} word",
        f"whsk_{RAW}",
        f"whpk_{RAW}",
        f"Whpk_{RAW}",
    ],
)
def test_what_looks_like_a_secret_and_is_none_is_not_sent_as_a_token(token: str) -> None:
    assert violations(token=token).keys() == {"token"}


def test_a_secret_is_not_sent_as_credentials() -> None:
    assert violations(credentials=f"whsec_{RAW}").keys() == {"authentication.credentials"}


def test_a_secret_that_signs_is_no_header() -> None:
    assert violations(headers={"X-Token": f"v1,whsec_{RAW}"}).keys() == {"headers"}
