"""Hashing of passwords, two at a time in a process, for the sign-in forms, HTTP Basic and the pages of users.

Hashing is slow on purpose, and without a bound it would take the processors from all other work.
"""

from __future__ import annotations

import threading

from django.contrib.auth.hashers import PBKDF2PasswordHasher

__all__ = ["AT_ONCE", "BoundedHasher"]

#: Passwords that are hashed at once. Few callers wait: HTTP Basic and Django's pages have bounds of their own.
AT_ONCE = 2
_turns = threading.BoundedSemaphore(AT_ONCE)


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's own hasher with a bound; the hashes are the same."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Hash a password as soon as fewer than AT_ONCE are being hashed."""
        with _turns:
            return super().encode(password, salt, iterations)
