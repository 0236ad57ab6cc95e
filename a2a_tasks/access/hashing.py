"""Hashing of passwords, two at a time in a process, whoever asks: the sign-in forms, HTTP Basic, or a page of users.

It is slow on purpose, and would take the processors from everything else.
"""

from __future__ import annotations

import threading

from django.contrib.auth.hashers import PBKDF2PasswordHasher

__all__ = ["AT_ONCE", "BoundedHasher"]

#: Passwords that are hashed at once. Those who wait are few: HTTP Basic and Django's pages have bounds of their own.
AT_ONCE = 2
_turns = threading.BoundedSemaphore(AT_ONCE)


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's own, with the same hashes."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Hash when there is a turn."""
        with _turns:
            return super().encode(password, salt, iterations)
