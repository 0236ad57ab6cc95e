"""Requests that are right: those of the golden conversations, of every dialect over each of its bindings."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tests.support.dialects.transcript import NAME, conversations

__all__ = ["Request", "golden", "filled"]

#: Whatever is said at an agent of the conversations is said at this one.
SLUG = "demo"
_AGENT = re.compile(r"^/agents/\w+")
_HOOK = re.compile(r"\w+://hooks\.example\.com[\w/]*")
#: Nobody listens there, and it is nobody's business elsewhere.
HOOK = "http://127.0.0.1:9/hook"


@dataclass(frozen=True)
class Request:
    """An HTTP request as it goes over the wire; the target as it stands in the first line."""

    verb: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    #: What was done to it.
    bent: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.verb!r} {self.target[:200]!r} {self.headers!r} {self.body[:600]!r} {self.bent}"
        )


@cache
def golden() -> tuple[Request, ...]:
    """The requests of all conversations, once each, with the placeholders of their ids."""
    found = []
    for conversation in conversations():
        for step in conversation.steps:
            if asked := step.get("client") or step.get("polls"):
                found.append(_request(asked, step.get("says", ""), step.get("with", {})))
    return tuple(dict.fromkeys(found))


def _request(asked: str, body: str, more: dict[str, str]) -> Request:
    verb, path = asked.split(" ", 1)
    headers = {"content-type": "application/json"} if body else {}
    headers |= {name.lower(): value for name, value in more.items()}
    return Request(
        verb.encode(),
        _AGENT.sub(f"/agents/{SLUG}", path).encode(),
        tuple((name.encode(), value.encode()) for name, value in headers.items()),
        _HOOK.sub(HOOK, body.strip()).encode(),
    )


def filled(request: Request, name: Callable[[str], str]) -> Request:
    """The request with something for each placeholder."""

    def put(text: bytes) -> bytes:
        return NAME.sub(lambda found: name(found[1]), text.decode()).encode()

    headers = tuple((key, put(value)) for key, value in request.headers)
    return Request(request.verb, put(request.target), headers, put(request.body))
