"""What may be answered to a hostile request, and what may not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lab.hostile.golden import Request
from tests import ROOT

__all__ = ["Answer", "is_error", "leaks", "wrong"]

HERE = f"{ROOT}/"
#: What nobody outside has to know. The requests hold nothing like it, so it cannot be an echo.
LEAKS = re.compile(
    rb'Traceback|File "|line \d+, in |\.py\b|\w{1,40}Error\b:|\w{1,40}Exception\b|psycopg|sqlite|django|msgspec|celery|twisted|uvicorn'
    rb"|asyncio|object at 0x|<class |NoneType|site-packages|/home/|/tmp/|/usr/|/opt/|\bINSERT INTO\b|\bUPDATE \b"
    # The card of the example `tables` has a SELECT of its own; the host's name tables of the host's.
    rb"|\bSELECT\b[^;]{0,2000}?\bFROM \W*(a2a|auth|django|pg)_"
    rb"|a2a_tasks\.|a2a_push\.|a2a_project\.|SECRET_KEY|Cursor|unhashable|not subscriptable|argument of type|codec can't|"
    + re.escape(HERE).encode()
)
#: The errors that bodies of HTTP+JSON have, by mount.
SHAPES = {"1.0": "status", "1.0-draft": "problem", "0.3": "rpc", "0.2": "rpc"}
#: Answers of the server itself, before the host is asked.
TRANSPORT = {400, 404, 405, 408, 411, 413, 414, 417, 431, 501, 505}
_COMMENT = re.compile(r"^:.*\n", re.MULTILINE)
_MOUNT = re.compile(rb"^/agents/demo/a2a/([^/?]+)(/?)([^?]*)")


@dataclass(frozen=True)
class Answer:
    """An answer; names of headers in lower case."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def header(self, name: bytes) -> bytes:
        """The header's value, or nothing."""
        return next((value for key, value in self.headers if key == name), b"")

    @property
    def media_type(self) -> bytes:
        """The Content-Type, without parameters."""
        return self.header(b"content-type").partition(b";")[0].strip().lower()


def leaks(answer: Answer) -> list[str]:
    """The words that should not be there."""
    shown = [answer.body, *(value for key, value in answer.headers if key != b"server")]
    return [found[0].decode(errors="replace") for text in shown for found in LEAKS.finditer(text)]


def is_error(answer: Answer) -> bool:
    """Was the request refused, on any layer?"""
    if answer.status >= 400:
        return True
    if answer.media_type == b"text/event-stream":
        return b'"error":{' in answer.body.split(b"\n\n")[0]
    return answer.body.startswith(b'{"jsonrpc":"2.0","id":') and b',"error":{' in answer.body


def wrong(request: Request, answer: Answer) -> Iterator[str]:
    """Everything that is wrong with an answer."""
    if answer.status >= 500 and not (answer.status == 503 and answer.header(b"retry-after")):
        yield f"status {answer.status}"
    for word in leaks(answer):
        yield f"says {word!r}"
    if any(b"\r" in value or b"\n" in value for _, value in answer.headers):
        yield "a header with a line break"
    if any(key == b"set-cookie" and b"a=b" in value for key, value in answer.headers):
        yield "a header of the client's"
    yield from _form(request, answer)


def _form(request: Request, answer: Answer) -> Iterator[str]:
    """Is it what the dialect has for an answer?"""
    if request.verb == b"HEAD" or answer.status in {204, 304}:
        if answer.body:
            yield "a body where there must be none"
        return
    match answer.media_type:
        case b"text/event-stream":
            yield from _events(request, answer.body)
        case b"application/json" | b"application/a2a+json" | b"application/problem+json":
            yield from _document(request, answer, _read(answer.body))
        case b"text/html" | b"text/plain" | b"":
            if request.target.startswith(b"/agents/demo/") and answer.status not in TRANSPORT:
                yield f"{answer.media_type!r} from an agent, status {answer.status}"
        case other:
            yield f"media type {other!r}"


def _not_json(name: str) -> Any:
    raise ValueError(name)


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= 20 else digits


def _read(text: bytes) -> Any:
    """The document; None if it is none."""
    try:
        return json.loads(text, parse_constant=_not_json, parse_int=_integer)
    except (ValueError, RecursionError):
        return None


def _document(request: Request, answer: Answer, document: Any) -> Iterator[str]:
    if document is None and answer.body.strip() != b"null":
        yield "a body that is not JSON"
        return
    if isinstance(document, dict) and "jsonrpc" in document:
        yield from _envelope(request, document)
        return
    if answer.status >= 400:
        yield from _refusal(request, answer, document)
    elif not isinstance(document, dict | list):
        yield "neither an object nor a list"


def _envelope(request: Request, document: dict[str, Any]) -> Iterator[str]:
    if document.get("jsonrpc") != "2.0" or ("result" in document) == ("error" in document):
        yield "an envelope that is none"
    error = document.get("error")
    if error is not None and not (
        isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    ):
        yield "an error without code or message"
    said = _read(request.body)
    asked = said.get("id") if isinstance(said, dict) else None
    if document.get("id") is not None and document["id"] != asked:
        yield f"an id that was not asked: {document['id']!r}"
    if "result" in document and document.get("id") != asked:
        yield "a result for nobody"


def _refusal(request: Request, answer: Answer, document: Any) -> Iterator[str]:
    found = _shape(document, answer.status)
    if not found:
        yield f"an error that is none: {document!r}"[:200]
        return
    pinned = _MOUNT.match(request.target)
    expected = SHAPES.get(pinned[1].decode(errors="replace")) if pinned and pinned[3] else None
    if expected and found != expected:
        yield f"an error of another dialect: {found}"


def _shape(document: Any, status: int) -> str:
    if not isinstance(document, dict):
        return ""
    inner = document.get("error")
    if (
        isinstance(inner, dict)
        and inner.get("code") == status
        and isinstance(inner.get("message"), str)
    ):
        return "status"
    if document.get("status") == status and {"type", "title", "detail"} <= document.keys():
        return "problem"
    if isinstance(document.get("code"), int) and isinstance(document.get("message"), str):
        return "rpc"
    return ""


def _events(request: Request, text: bytes) -> Iterator[str]:
    for block in _COMMENT.sub("", text.decode(errors="replace")).split("\n\n"):
        if not block.strip() or block.startswith("retry: "):
            continue
        try:
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
        except ValueError:
            yield f"an event that is none: {block!r}"[:200]
            continue
        document = _read(lines.get("data", "").encode())
        if not isinstance(document, dict) or not lines.keys() <= {"id", "event", "data"}:
            yield f"an event that is none: {block!r}"[:200]
        elif "jsonrpc" in document:
            yield from _envelope(request, document)
