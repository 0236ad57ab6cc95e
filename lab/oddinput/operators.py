"""Bodies for the management API: each member that its description names, as an odd text, a long list and a wide object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lab.oddinput.doors import FILLS, PLAIN, Odd, make_request

__all__ = ["list_changes"]

#: Bytes of a body, and values and members in it.
LENGTH, VALUES, MEMBERS = 1_000_000, 99_000, 50_000
#: Bodies that are odd as a whole, with their content types.
WHOLE = {
    "spaces": b" " * LENGTH,
    "brackets": b"[" * LENGTH,
    "no JSON": b"\xff" * LENGTH,
    "a number": b"9" * LENGTH,
    "members": b"{" + b",".join(b'"k%d":"x"' % n for n in range(MEMBERS)) + b"}",
    "too many members": b"{" + b",".join(b'"k%d":"x"' % n for n in range(VALUES)) + b"}",
}


def list_changes(
    description: dict[str, Any], session: str, csrf: str, keys: dict[str, str]
) -> Iterator[Odd]:
    """Yield requests of every change in the description; `keys` are those of rows that there are, by resource."""
    heads = [
        f"Cookie: sessionid={session}; csrftoken={csrf}".encode(),
        f"X-CSRFToken: {csrf}".encode(),
        b"Content-Type: application/json",
    ]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if method not in {"post", "patch"} or "requestBody" not in operation:
                continue
            resource = path.split("/")[3]
            there = path.partition("{")[0] + keys.get(resource, "1") + path.partition("}")[2]
            line = f"{method.upper()} {there if '{' in path else path} HTTP/1.1".encode()
            for kind, body in _list_bodies(_find_members(description, operation)):
                yield Odd(f"{method} {path} {kind[0]}", kind[1], make_request(line, heads, body))


def _find_members(description: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """Return the names of the members of a body."""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    while reference := schema.get("$ref"):
        schema = description["components"]["schemas"][reference.rpartition("/")[2]]
    return sorted(schema.get("properties", {"x": {}}))


def _list_bodies(members: list[str]) -> Iterator[tuple[tuple[str, str], bytes]]:
    for member in members:
        for fill in (PLAIN, *FILLS[::4]):
            text = fill * (LENGTH // len(json.dumps(fill)))
            yield (member, fill), json.dumps({member: text}).encode()
        for kind, value in (
            ("list", [1] * VALUES),
            ("object", {f"k{n}": "x" for n in range(MEMBERS)}),
        ):
            yield (member, kind), json.dumps({member: value}).encode()
    yield ("body", PLAIN), json.dumps({"nothing": PLAIN * LENGTH}).encode()
    for kind, body in WHOLE.items():
        yield ("body", kind), body
