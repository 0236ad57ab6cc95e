"""Questions for approval of tool calls, whatever the framework: words for the call, for yes and for no."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["NO", "YES", "UnreadableAnswer", "format_call", "read_members"]

YES = frozenset(["yes", "y", "ok", "okay", "approve", "approved", "allow", "true"])
NO = frozenset(["no", "n", "deny", "denied", "reject", "false"])


class UnreadableAnswer(Exception):
    """An answer that does not fit its question; the text says how, and the client reads it."""


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as people read it: `pay(amount=7)`."""
    given = (f"{key}={json.dumps(v, ensure_ascii=False)}" for key, v in arguments.items())
    return f"{name}({', '.join(given)})"


def read_members(name: str, answer: Mapping[str, Any], asked: set[str]) -> dict[str, Any]:
    """Return the answers of a data part by the ids of the calls. Raises UnreadableAnswer if one is missing or unknown."""
    found = answer.get(name, {})
    if not isinstance(found, dict):
        raise UnreadableAnswer(f"{name} must be an object, with an answer for each id.")
    if unknown := found.keys() - asked:
        raise UnreadableAnswer(f"{name}.{min(unknown)} was not asked.")
    if missing := asked - found.keys():
        raise UnreadableAnswer(f"{name}.{min(missing)} is missing.")
    return found
