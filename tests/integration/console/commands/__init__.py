"""Subcommands of `manage.py a2a`, as operators give them."""

from __future__ import annotations

import io

from django.core.management import call_command

__all__ = ["a2a"]


def a2a(*words: object) -> str:
    out = io.StringIO()
    call_command("a2a", *map(str, words), stdout=out, stderr=io.StringIO())
    return out.getvalue()
