"""The doors of the host, and odd inputs for them, made in code: as long as the door allows."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["BODY", "FILLS", "PLAIN", "Door", "Odd", "list_doors", "list_odd", "make_request"]

#: Characters of a line of a head (its limit is 16 KiB), and bytes of a body (A2A_MAX_BODY_BYTES is 4 MiB).
HEAD, BODY = 16_000, 4_000_000
#: What is repeated; `a` is the plain text that the others are compared with.
PLAIN = "a"
FILLS = (
    *("eyJ-", "eyJhbGciOiJ9.", "a2a_", "-----BEGIN ", "Bearer ", "password=", "://", "http://a@"),
    *("%", "%41", "%C3%A4", "%00", "/", "../", "a/", ";", ",", "=", "a=b;", "a=b&", "&", "[", "]:"),
    *(
        '"',
        "\\",
        "\\a",
        '"\\',
        "\\u00e4",
        "xn--a-",
        "xn--",
        "0",
        "9",
        "1.",
        "-",
        "--",
        ".",
        "a.",
        "@",
        ":",
        "::",
        "+",
    ),
    *(
        " ",
        "\t",
        "(",
        "{",
        "<",
        "<a ",
        "<!--",
        "_",
        "*",
        "*/*,",
        "a/b;q=0.1,",
        "for=a,",
        "bytes=0-,",
        "1.1.1.1,",
    ),
    *("ä", "\u0345\u0301", "\u200d", "\u1e9b\u0323", "\U0001f600", "\ufdfa", "\u0660"),
)
SMALL = '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}'
JSON = ("Content-Type: application/json", "A2A-Version: 1.0")
#: Heads that somebody reads.
NAMES = (
    *("Authorization", "X-API-Key", "Cookie", "Accept", "Accept-Language", "Accept-Encoding"),
    *("Content-Type", "A2A-Version", "A2A-Extensions", "Last-Event-ID", "Idempotency-Key", "Host"),
    *("traceparent", "tracestate", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "Origin"),
    *("X-Forwarded-Proto", "X-Request-ID", "User-Agent", "Referer", "Range", "If-None-Match"),
    *("If-Modified-Since", "Transfer-Encoding", "Upgrade", "Connection", "Expect", "Date"),
)


@dataclass(frozen=True)
class Odd:
    """One input."""

    #: Its door, and what is odd about it.
    door: str
    kind: str
    request: bytes
    #: Of gRPC: the method, whose message is the request, and the metadata.
    method: str = ""
    metadata: tuple[tuple[str, str | bytes], ...] = ()


@dataclass(frozen=True)
class Door:
    """A place where a text comes in; `make` returns the request with the text in it."""

    name: str
    make: Callable[[bytes], bytes]
    length: int = HEAD


def make_request(line: bytes, heads: list[bytes], body: bytes = b"") -> bytes:
    names = {head.partition(b":")[0].lower() for head in heads}
    usual = [b"Host: localhost", b"Connection: close", b"Content-Length: %d" % len(body)]
    heads = [*(one for one in usual if one.partition(b":")[0].lower() not in names), *heads]
    return b"\r\n".join([line, *heads, b"", body])


def _quoted(make: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda text: make(text + b'"')


def list_doors(session: str = "", csrf: str = "") -> list[Door]:
    """Return the doors for a text; `session` is the cookie of an operator."""
    cookie = [f"Cookie: sessionid={session}; csrftoken={csrf}".encode()] if session else []
    json_heads = [head.encode() for head in JSON]

    def head(name: str, line: bytes, before: bytes, body: str) -> Callable[[bytes], bytes]:
        return lambda text: make_request(
            line, [*json_heads, name.encode() + b": " + before + text], body.encode()
        )

    def place(path: bytes) -> Callable[[bytes], bytes]:
        return lambda text: make_request(
            b"GET " + path + text + b" HTTP/1.1", [*cookie, b"A2A-Version: 1.0"]
        )

    def form(path: bytes, name: str) -> Callable[[bytes], bytes]:
        def make(text: bytes) -> bytes:
            body = f"csrfmiddlewaretoken={csrf}&username=operator&password=x&{name}=".encode()
            heads = [b"Content-Type: application/x-www-form-urlencoded", *cookie]
            return make_request(b"POST " + path + b" HTTP/1.1", heads, body + text)

        return make

    post = b"POST /agents/demo/ HTTP/1.1"
    page = b"GET /admin/login/ HTTP/1.1"
    doors = [
        Door(f"{where} {name}", head(name, line, b"", body))
        for name in NAMES
        for where, line, body in (("rpc", post, SMALL), ("page", page, ""))
    ]
    doors += [
        Door(f"Authorization {scheme.strip()}", head("Authorization", post, scheme.encode(), SMALL))
        for scheme in (
            "Bearer ",
            "Basic ",
            "Bearer a2a_",
            "Bearer eyJhbGciOiJFUzI1NiJ9.",
            "Digest ",
        )
    ]
    quoted = {"Cookie": b'x="', "Content-Type": b'a/b; x="', "Accept": b'a/b; x="'}
    for name, before in quoted.items():
        for line in (page, b"GET /api/tasks HTTP/1.1"):
            door = f"{line.decode().split()[1]} {name} in quotes"
            doors.append(Door(door, _quoted(head(name, line, before, "")), HEAD - 2))
    doors.append(
        Door(
            "Basic password",
            lambda text: make_request(
                post,
                [*json_heads, b"Authorization: Basic " + base64.b64encode(b"operator:" + text)],
                SMALL.encode(),
            ),
            HEAD * 3 // 4,
        )
    )
    paths = (
        *(
            "/",
            "/agents/",
            "/agents/demo/",
            "/agents/demo/tasks/",
            "/agents/demo/files/",
            "/admin/",
        ),
        *("/api/", "/api/tasks/", "/handover/", "/playground/hooks/", "/static/", "/.well-known/"),
        *("/agents/demo/a2a/", "/agents/demo/tasks?pageToken=", "/agents/demo/tasks?contextId="),
        *("/agents/demo/tasks?status=", "/agents/demo/tasks?pageSize=", "/agents/demo/tasks?"),
        *("/agents/demo/tasks?statusTimestampAfter=", "/agents/demo/tasks/x?historyLength="),
        *("/admin/login/?next=", "/admin/a2a_tasks/task/?q=", "/admin/a2a_tasks/task/?state="),
        *("/admin/a2a_tasks/task/?", "/admin/a2a_tasks/auditentry/?q=", "/api/tasks?search="),
        *("/api/tasks?cursor=", "/api/tasks?state=", "/api/tasks?created_after=", "/api/usage?by="),
        *("/admin/a2a_tasks/contextmemory/?q=", "/admin/a2a_push/delivery/?q=", "/admin/jsi18n/?"),
    )
    doors += [Door(path, place(path.encode())) for path in paths]
    fields = ("username", "password", "next", "x")
    doors += [
        Door(f"/admin/login/ {name}", form(b"/admin/login/", name), 1_000_000) for name in fields
    ]
    doors += [
        Door(f"/handover/ {n}", form(b"/handover/", n), 1_000_000) for n in ("token", "secret")
    ]
    return doors


def list_odd(doors: list[Door]) -> Iterator[Odd]:
    """Yield each door with plain letters, and with each of the odd texts in as many bytes."""
    for door in doors:
        for fill in (PLAIN, *FILLS):
            unit = fill.encode()
            text = (unit * (door.length // len(unit) + 1))[: door.length]
            yield Odd(door.name, fill, door.make(text))
