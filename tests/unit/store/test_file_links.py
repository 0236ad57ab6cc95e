"""The URL of a file opens this file of this agent, until its time is over, for its caller where callers are asked for."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from a2a_tasks.store import clock
from a2a_tasks.store.file_links import MAX_LENGTH, is_signed, make_linker
from tests.support.rows import rows

ALICE = "user:alice"


@pytest.fixture
def signed() -> dict[str, str]:
    """What the host wrote into the URL of a file of `demo`."""
    query = parse_qs(urlsplit(make_linker("demo", "https://h", ALICE)("f-1")).query)
    said = {name: value for name, (value,) in query.items()}
    return {"agent": "demo", "file_id": "f-1", **said}


@pytest.mark.parametrize("urls", ["signed", "authenticated"])
def test_what_was_signed_opens_its_file(urls: str, settings: Settings) -> None:
    settings.A2A_FILE_URLS = urls
    query = parse_qs(urlsplit(make_linker("demo", "https://h", ALICE)("f-1")).query)
    said = {name: value for name, (value,) in query.items()}
    assert is_signed("demo", "f-1", **said, principal=ALICE)
    assert is_signed("demo", "f-1", **said, principal="user:bob") is (urls == "signed")


@rows(
    ("name", "value"),
    [
        ("agent", "other"),
        ("file_id", "f-2"),
        ("signature", "x"),
        ("signature", ""),
        ("expires", ""),
    ],
)
def test_nothing_else_is_opened_by_it(name: str, value: str, signed: dict[str, str]) -> None:
    assert is_signed(**signed, principal=ALICE)
    assert not is_signed(**{**signed, name: value}, principal=ALICE)


def test_its_end_cannot_be_put_off(signed: dict[str, str]) -> None:
    later = str(int(signed["expires"]) + 1)
    assert not is_signed(**{**signed, "expires": later}, principal=ALICE)
    assert not is_signed(**{**signed, "expires": "9" * (MAX_LENGTH + 1)}, principal=ALICE)


def test_it_opens_nothing_afterwards(
    signed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    end = int(signed["expires"])
    for at, is_open in ((end - 1, True), (end, False), (end + 1, False)):
        monkeypatch.setattr(clock, "estimate", lambda at=at: at)
        assert is_signed(**signed, principal=ALICE) is is_open
