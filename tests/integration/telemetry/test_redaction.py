"""Redacting: what is a credential, or looks like one, is not kept; what an operator reads the log for is."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.access.api_keys import issue
from a2a_tasks.telemetry.redaction import MAX_LENGTH, redact

CANARY = "canary0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"authorization: basic {CANARY}",
        f"{{'Authorization': 'Bearer {CANARY}'}}",
        f"GET https://user:{CANARY}@example.com/x",
        f"a-scheme-of-more-than-forty-characters-in-its-name://user:{CANARY}@example.com/x",
        f"GET https://example.com/x?key={CANARY}&page=2",
        f"GET https://example.com/x?access_token={CANARY}",
        f"password={CANARY}",
        f'{{"client_secret": "{CANARY}"}}',
        f"X-API-Key: {CANARY}",
        f"OPENAI_API_KEY={CANARY}",
        f"sk-{CANARY}",
        f"ghp_{CANARY}",
        f"whsec_{CANARY}",
        f"eyJhbGciOiJub25lIn0.{CANARY}.{CANARY}",
        f"session-eyJhbGciOiJub25lIn0.{CANARY}.",
        f"eyJhbGciOiJkaXIifQ..{CANARY}.{CANARY}.{CANARY}",  # a JWE without an encrypted key
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----",
        f"Cookie: {CANARY}",
    ],
)
def test_what_looks_like_a_credential_is_taken_out(text: str) -> None:
    assert CANARY not in redact(text)
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "asked https://example.com/search?q=keys&page=2 and got 200",
        "12 tokens used, 0.3 s",
        "eyJ is how base64 begins. eyJ.",
        "the bearer of bad news is basic",
        "task 0b6e4ce1-6c5b-44b6-9b6d-3a2a1a5a7ce0 went well",
        "Traceback (most recent call last):\n  File 'x.py', line 3\nKeyError: 'name'",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert redact(text) == text


def test_a_long_text_is_cut_before_it_is_redacted() -> None:
    said = redact(f"begin password={CANARY} {'x' * 1_000_000} token={CANARY} end")
    assert said.startswith("begin password=[redacted] x")
    assert said.endswith("x token=[redacted] end")
    assert len(said) < MAX_LENGTH + 100


@pytest.mark.parametrize("at", range(-60, 60, 7))
def test_no_part_of_a_secret_is_left_beside_a_cut(at: int) -> None:
    secret = f"sk-{CANARY * 20}"
    half = MAX_LENGTH // 2
    said = redact(f"{'x ' * (half // 2 + at)}{secret}{' x' * MAX_LENGTH}")
    assert CANARY not in said
    said = redact(f"{' x' * MAX_LENGTH} {secret}{' x' * (half // 2 + at)}")
    assert CANARY not in said


@pytest.mark.django_db
def test_of_a_key_of_this_host_its_public_part_stays() -> None:
    issued = issue("robot")
    said = redact(f"called with {issued.key}")
    assert said == f"called with a2a_{issued.row.prefix}_[redacted]"


def test_what_this_process_keeps_for_itself_is_taken_out(settings: Any) -> None:
    settings.SECRET_KEY = CANARY
    assert redact(f"so it is: {CANARY}!") == "so it is: [redacted]!"


def test_the_secrets_of_environments_are_taken_out(settings: Any) -> None:
    settings.A2A_ENVIRONMENT_KEY, settings.A2A_ENVIRONMENT_KEYS = CANARY, f"adk={CANARY[::-1]}"
    assert redact(f"{CANARY} {CANARY[::-1]}") == "[redacted] [redacted]"
