"""Passwords are hashed a few at a time, and as Django hashes them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password
from pytest_django import Settings

from a2a_project import settings as ours
from a2a_tasks.access.hashing import AT_ONCE, BoundedHasher


@pytest.fixture(autouse=True)
def hashers(settings: Settings) -> None:
    """Those of the host, not those of the tests."""
    settings.PASSWORD_HASHERS = ours.PASSWORD_HASHERS


def test_what_django_has_hashed_is_verified() -> None:
    kept = PBKDF2PasswordHasher().encode("secret", "salt", iterations=1)
    assert check_password("secret", kept)
    assert not check_password("wrong", kept)


def test_what_the_host_has_hashed_is_verified_by_django() -> None:
    kept = BoundedHasher().encode("secret", "salt", iterations=1)
    assert PBKDF2PasswordHasher().verify("secret", kept)
    assert not PBKDF2PasswordHasher().verify("wrong", kept)


def test_no_more_are_hashed_at_once_than_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, most, full = 0, 0, threading.Barrier(AT_ONCE)
    lock = threading.Lock()

    def encode(*_: object) -> str:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        full.wait(10)  # all that may are here together
        with lock:
            under_way -= 1
        return "pbkdf2_sha256$1$salt$hash"

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", encode)
    kept = "pbkdf2_sha256$1$salt$other"
    with ThreadPoolExecutor(AT_ONCE * 5) as several:
        tries = [several.submit(check_password, "x", kept) for _ in range(AT_ONCE * 10)]
        assert not any(one.result() for one in tries)
    assert most == AT_ONCE
