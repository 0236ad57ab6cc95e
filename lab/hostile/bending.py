"""Ways to bend a request: its JSON, its bytes, its headers, its path. A number decides which; the same number, the same request."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from lab.hostile.golden import Request, filled, golden

__all__ = ["hostile"]

Path = tuple[Any, ...]
Bend = Callable[[random.Random, Request], Request]
#: Where something stands that JSON's writers would not write.
MARK = "\x01mark\x01"
#: In place of a value: what parsers, databases, headers and people stumble over.
VALUES: Sequence[bytes] = (
    b"null", b"true", b"false", b"0", b"-1", b"-0", b"1.5", b"1e2", b"1e999", b"-1e999", b"NaN", b"Infinity",
    b"2147483648", b"-2147483649", b"9223372036854775808", b"18446744073709551616", b"9" * 5000, b"0x10", b"01",
    b"1_000", b"1e-400", b"[]", b"{}", b"[null]", b"[[]]", b'{"":""}', b'""', b'" "', b'"\\u0000"',
    b'"a\\u0000b"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ufeff"', b'"\\u202e"', b'"\\u2028"', b'"\\uffff"',
    b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\xf4\x90\x80\x80"', b'"\\x"', b'"\\u12"', b'"\n"', b'"\x00"',
    b'"a\\r\\nset-cookie: a=b"', b'"\\r\\n\\r\\n"', b'"../../../../etc/passwd"', b'"%2e%2e%2f"', b'"%00"',
    b"\"' or '1'='1\"", b'"\\"; drop table a2a_tasks_task; --"', b'"%s%n%d"', b'"{0.__class__}"', b'"${jndi:x}"',
    b'"<script>alert(1)</script>"', b'"\xe2\x84\xab"', b'"A\xcc\x8a"', b'"\xef\xbc\x8e\xef\xbc\x8e"',
    b'"' + b"x" * 257 + b'"', b'"' + b"x" * 70_000 + b'"', b'"' + "\u1f600".encode() * 256 + b'"',
    b'"0000-00-00T00:00:00Z"', b'"0001-01-01T00:00:00+14:00"', b'"9999-12-31T23:59:59-14:00"',
    b'"2026-13-45T99:99:99Z"', b'"2026-01-01T00:00:00.9999999999Z"', b'"2026-01-01"', b"1" * 15, b"-" + b"1" * 15,
    b'"file:///etc/passwd"', b'"http://169.254.169.254/"', b'"http://[::1"', b'"http://a b/"', b'"//["', b'"data:,"',
    b'"gopher://127.0.0.1:6379/_x"', b'"http://user:password@127.0.0.1:9/"', b'"http://127.0.0.1:9/\\r\\nx: y"',
    b'"' + b"A" * 7 + b'"', b'"===="', b'"____"', b'"\xf0\x9f\x98\x80"', b'"ROLE_UNSPECIFIED"', b'"TASK_STATE_UNSPECIFIED"',
    b'["a","a"]', b'[1,"a",null,{}]', b"[" * 70 + b"]" * 70, b'{"a":' * 70 + b"1" + b"}" * 70, b"[" * 100_000,
    b"[" + b'"x",' * 3000 + b'"x"]', b'[' + b'{"text":"x"},' * 1200 + b'{"text":"x"}]', b'{"a":1,"a":2}',
    b'{"__proto__":{"admin":true}}', b'{"$ref":"#"}', b'{"@type":"type.googleapis.com/google.protobuf.Any"}',
)  # fmt: skip
#: In place of the name of a member.
NAMES = (
    b'""', b'"__proto__"', b'"constructor"', b'"__class__"', b'"\\u0000"', b'"\\ud800"', b'"id\\u200b"', b'"ID"',
    b'"task_id"', b'"taskId "', b'"message"', b'"' + b"k" * 10_000 + b'"', b"1", b"null", b'"\xff"',
)  # fmt: skip
#: In place of a piece of a path.
SEGMENTS = (
    b"%00", b"%", b"%2", b"%zz", b"%ff", b"%ed%a0%80", b"%c0%af", b"..", b"%2e%2e", b"..%2f..%2fetc%2fpasswd", b".",
    b"%2f", b"%5c", b"%0d%0aset-cookie:%20a=b", b"%0a", b"a%3Acancel", b":cancel", b":subscribe", b":", b"a:b:c",
    b"x" * 5000, b"%F0%9F%98%80", b"%E2%84%AB", b"%252e%252e", b";a=b", b"a%3Fb", b"*", b"'", b"%22", b"{id}", b"v1",
    b"a2a", b".well-known", b"tasks", b"agents", b"admin", b"\xff\xfe", b"1.0", b"99.9", b"%20", b"+", b"%7f", b"a%26b",
)  # fmt: skip
QUERIES = (
    b"?", b"?&&&", b"?=", b"?a=%ff", b"?%ff=a", b"?pageSize=%00", b"?pageSize=1e9", b"?pageSize=-1", b"?pageSize=" + b"9" * 400,
    b"?pageToken=x", b"?pageToken=" + b"A" * 4000, b"?pageToken=eyJhIjoxfQ:1a:xx", b"?A2A-Version=9.9", b"?A2A-Version=1.0&A2A-Version=0.3",
    b"?A2A-Version=%00", b"?tenant=..%2f..", b"?tenant=" + b"t" * 300, b"?tenant=%0d%0a", b"?historyLength=x", b"?historyLength=99999999999",
    b"?status=X", b"?status=TASK_STATE_WORKING&status=0", b"?includeArtifacts=maybe", b"?statusTimestampAfter=never",
    b"?statusTimestampAfter=0001-01-01T00:00:00%2B14:00", b"?lastUpdatedAfter=-1", b"?lastUpdatedAfter=999999999999999",
    b"?contextId=%00", b"?contextId=" + b"c" * 3000, b"?configId=%00", b"?id=other", b"?" + b"a=1&" * 2000, b"?\xff\xff",
    b"?history_length=2147483648", b"?name=tasks%2F..%2F..", b"?filter=a", b"?page_size=0",
)  # fmt: skip
VERBS = (
    b"GET",
    b"POST",
    b"PUT",
    b"PATCH",
    b"DELETE",
    b"HEAD",
    b"OPTIONS",
    b"TRACE",
    b"PROPFIND",
    b"get",
    b"XX",
)
#: What may stand in a header; the wire allows no line break.
ODD = (
    b"", b" ", b",", b";", b'"', b"\\", b"x" * 4000, b"\xff\xfe", b"\xe2\x82\xac", b"%00", b"%0d%0a", b"' or 1=1 --",
    b"-1", b"0", b"999999999999", b"9" * 18, b"1-zz", b"1-" + b"a" * 33, b"*", b"*/*", b"null", b"../..", b"1.0, 0.3", b"1.0.0.0",
)  # fmt: skip
HEADERS = (
    b"a2a-version", b"a2a-extensions", b"x-a2a-extensions", b"last-event-id", b"idempotency-key", b"accept", b"if-none-match",
    b"content-type", b"content-encoding", b"content-language", b"accept-encoding", b"origin", b"referer", b"cookie", b"range",
    b"x-forwarded-for", b"x-forwarded-proto", b"forwarded", b"user-agent", b"x-request-id", b"traceparent", b"client-cert", b"via",
)  # fmt: skip
TYPES = (
    b"text/plain", b"text/html", b"application/xml", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x",
    b"multipart/mixed", b"application/json; charset=utf-16", b"application/json, application/json", b"application/a2a+json",
    b"application/jsonp", b"APPLICATION/JSON", b"json", b"application/", b"/", b"a/b+json", b"application/octet-stream", b"application/grpc",
)  # fmt: skip
SHOWN = (
    (b"authorization", b"Bearer"), (b"authorization", b"Bearer x.y.z"), (b"authorization", b"Bearer " + b"a" * 20_000),
    (b"authorization", b"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0."), (b"authorization", b"Basic " + b"A" * 9),
    (b"authorization", b"Basic OjpcMDo6"), (b"authorization", b"Negotiate x"), (b"authorization", b"\xff\xff"),
    (b"x-api-key", b"a2a_aaaaaaaaaaaa_" + b"A" * 43), (b"x-api-key", b"\xff\x00"[:1]), (b"x-api-key", b"' or 1=1 --"),
    (b"x-api-key", b"x" * 5000), (b"cookie", b"sessionid=x; csrftoken=y"),
)  # fmt: skip


# --- JSON -------------------------------------------------------------------------------------------


def _places(tree: Any, path: Path = ()) -> Iterator[Path]:
    """The ways to every node."""
    yield path
    below = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, node in below:
        yield from _places(node, (*path, key))


def _with(tree: Any, path: Path, change: Callable[[Any, Any], None]) -> Any:
    """A copy in which the parent of a node was changed: it is given parent and key."""
    holder = [json.loads(json.dumps(tree))]
    parent: Any = holder
    steps = (0, *path)
    for step in steps[:-1]:
        parent = parent[step]
    change(parent, steps[-1])
    return holder[0] if holder else None


def _spelt(tree: Any, raw: bytes) -> bytes:
    """The text, with `raw` where the mark is."""
    text = json.dumps(tree, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return text.replace(json.dumps(MARK).encode(), raw)


def _put(parent: Any, key: Any) -> None:
    parent[key] = MARK


def _remove(parent: Any, key: Any) -> None:
    del parent[key]


def _rename(parent: Any, key: Any) -> None:
    if isinstance(parent, dict):
        parent[MARK] = parent.pop(key)


def _nest(parent: Any, key: Any) -> None:
    parent[key] = [parent[key]]


def _repeat(parent: Any, key: Any) -> None:
    if isinstance(parent[key], list):
        parent[key] = parent[key] * 300


def _tree(request: Request) -> Any:
    return json.loads(request.body or b"{}")


def value(chance: random.Random, request: Request) -> Request:
    """Another value, somewhere."""
    tree = _tree(request)
    path = chance.choice(list(_places(tree)))
    return replace(request, body=_spelt(_with(tree, path, _put), chance.choice(VALUES)))


def member(chance: random.Random, request: Request) -> Request:
    """A member that is not there, is called otherwise, is in a list, or there many times."""
    tree = _tree(request)
    path = chance.choice(list(_places(tree)))
    change = chance.choice((_remove, _rename, _nest, _repeat))
    return replace(request, body=_spelt(_with(tree, path, change), chance.choice(NAMES)))


def twice(chance: random.Random, request: Request) -> Request:
    """A member that is there twice."""
    name = json.dumps(chance.choice(["id", "method", "message", "params", "x"])).encode()
    again = b"{" + name + b":" + chance.choice(VALUES) + b","
    places = [i for i, byte in enumerate(request.body) if byte == ord("{")]
    if not places:
        return value(chance, request)
    at = chance.choice(places)
    return replace(request, body=request.body[:at] + again + request.body[at + 1 :])


def stranger(chance: random.Random, request: Request) -> Request:
    """The body of another request."""
    return replace(request, body=chance.choice(golden()).body)


# --- bytes -------------------------------------------------------------------------------------------


def cut(chance: random.Random, request: Request) -> Request:
    """A beginning."""
    return replace(request, body=request.body[: chance.randrange(len(request.body) + 1)])


def flipped(chance: random.Random, request: Request) -> Request:
    """Some bytes are others."""
    body = bytearray(request.body or b"{}")
    for _ in range(chance.randint(1, 4)):
        body[chance.randrange(len(body))] = chance.randrange(256)
    return replace(request, body=bytes(body))


def wrapped(chance: random.Random, request: Request) -> Request:
    """The same text in another dress."""
    body = request.body
    text = body.decode(errors="replace")
    dresses = (
        b"\xef\xbb\xbf" + body,
        text.encode("utf-16"),
        text.encode("utf-32"),
        gzip.compress(body * chance.choice((1, 1000)), mtime=0),
        b"[" + body + b"]",
        b"[" + body + b"," + body + b"]",
        body + b"\x00",
        body + body,
        body + b" // comment",
        body + b",",
        b"\n" * 10_000 + body,
        b")]}',\n" + body,
        b"data: " + body + b"\n\n",
        b"--x\r\ncontent-disposition: form-data; name=a\r\n\r\n" + body + b"\r\n--x--",
        b"%00" + body,
        b"",
        b" ",
        b"null",
        b"\x00" * 100,
    )
    return replace(request, body=chance.choice(dresses))


def noise(chance: random.Random, request: Request) -> Request:
    """Bytes that mean nothing."""
    return replace(request, body=chance.randbytes(chance.choice((1, 40, 3000))))


# --- headers, path -------------------------------------------------------------------------------------


def _headed(request: Request, name: bytes, text: bytes, *, instead: bool) -> Request:
    kept = [one for one in request.headers if not instead or one[0] != name]
    return replace(request, headers=(*kept, (name, text)))


def header(chance: random.Random, request: Request) -> Request:
    """A header with something odd in it, perhaps beside the right one."""
    name, instead = chance.choice(HEADERS), chance.random() < 0.7
    return _headed(request, name, chance.choice(ODD), instead=instead)


def media_type(chance: random.Random, request: Request) -> Request:
    """The body is called something else, or said to be packed."""
    if chance.random() < 0.3:
        packed = chance.choice((b"gzip", b"br", b"identity", b"deflate, gzip", b"x"))
        return _headed(request, b"content-encoding", packed, instead=True)
    return _headed(request, b"content-type", chance.choice(TYPES), instead=True)


def shown(chance: random.Random, request: Request) -> Request:
    """Credentials that are none."""
    return replace(request, headers=(*request.headers, chance.choice(SHOWN)))


def path(chance: random.Random, request: Request) -> Request:
    """Another path: a segment changed, added, doubled or left out."""
    segments = request.target.split(b"?")[0].split(b"/")[1:]
    at = chance.randrange(len(segments) + 1)
    odd = chance.choice(SEGMENTS)
    ways = (
        [*segments[:at], odd, *segments[at + 1 :]],
        [*segments[:at], odd, *segments[at:]],
        [*segments[:at], b"", *segments[at:]],
        segments[:at],
        [*segments[: max(at, 1) - 1], segments[max(at, 1) - 1] + odd, *segments[max(at, 1) :]],
    )
    return replace(request, target=b"/" + b"/".join(chance.choice(ways)))


def query(chance: random.Random, request: Request) -> Request:
    """Something in the query."""
    return replace(request, target=request.target.split(b"?")[0] + chance.choice(QUERIES))


def verb(chance: random.Random, request: Request) -> Request:
    """Another verb."""
    return replace(request, verb=chance.choice(VERBS))


BENDS: Sequence[tuple[Bend, int]] = (
    (value, 30), (member, 12), (twice, 4), (stranger, 4), (cut, 4), (flipped, 6), (wrapped, 8), (noise, 2),
    (header, 8), (media_type, 4), (shown, 3), (path, 9), (query, 6), (verb, 4),
)  # fmt: skip


def hostile(number: int, known: Callable[[str, random.Random], str]) -> Request:
    """Request `number`: a golden one, bent once, sometimes more often. `known` gives something for a placeholder."""
    chance = random.Random(number)
    request = filled(chance.choice(golden()), lambda name: known(name, chance))
    bends, weights = zip(*BENDS, strict=True)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        bend: Bend = chance.choices(bends, weights)[0]
        try:
            request = bend(chance, request)
        except (ValueError, RecursionError):  # its body is no JSON any more
            continue
        done.append(bend.__name__)
    return replace(request, bent=tuple(done))
