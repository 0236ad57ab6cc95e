"""Requests at the limits for the doors of other protocols: MCP, OpenAI's API, AG-UI, the AI catalog."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lab.oddinput.bodies import ESCAPES, VALUES, Bodies, fill_up, list_values
from lab.oddinput.doors import BODY, FILLS, HEAD, PLAIN, Door, Odd, make_request
from tests.integration.doors.mcp.raw import NEW, OLD, head_of, message

__all__ = ["PROTOCOLS", "Protocol", "list_heads", "list_requests"]

#: Objects of a list, and the members of each are values, too.
OBJECTS = VALUES // 4
MARK = "MARK"
#: Heads that these doors read besides those of all doors.
NAMES = (
    *("Mcp-Name", "Mcp-Method", "Mcp-Protocol-Version", "Mcp-Session-Id", "Origin", "Accept"),
    *("A2A-Context-Id", "X-Stainless-Retry-Count", "X-OpenWebUI-Chat-Id", "Authorization"),
)
#: Each run is another one: the same one once more would be refused without being read.
_NUMBERS = itertools.count()
CATALOG = "/.well-known/ai-catalog.json"


@dataclass(frozen=True)
class Protocol:
    """A door: how a message with one text is written there, and other bodies."""

    name: str
    path: str
    #: Writes a body whose message is that value.
    say: Callable[[Any], dict[str, Any]]
    others: Callable[[], dict[str, Any]]
    heads: tuple[str, ...] = ()

    def request(self, body: bytes) -> bytes:
        """Write a request with a body."""
        heads = [b"Content-Type: application/json", *(head.encode() for head in self.heads)]
        return make_request(f"POST {self.path} HTTP/1.1".encode(), heads, body)

    def write(self, value: Any) -> bytes:
        """Write the body of a message."""
        return json.dumps(self.say(value)).encode()

    def raw(self, text: str) -> bytes:
        """Write the body of a message whose JSON is there already."""
        return self.write(MARK).replace(json.dumps(MARK).encode(), text.encode())


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _chat(content: Any, before: Any = (), **more: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": [*before, _user(content)], **more}


def _list_chats() -> dict[str, Any]:
    turns = [_user("a"), {"role": "assistant", "content": "b"}]
    urls = {
        fill: "data:" + fill_up(fill, BODY - 1000)
        for fill in (";", ",", ";a", "a/b;c=d", ";base64,")
    }
    return {
        PLAIN: _chat("echo " + fill_up(PLAIN)),
        "a long history": _chat("echo x", turns * (OBJECTS // 2)),
        "a long history of lists": _chat(
            "echo x", [_user([{"type": "text", "text": "a"}])] * (VALUES // 8)
        ),
        "a long history of images": _chat(
            "echo x", [_user([{"type": "image_url", "x": 1}])] * (VALUES // 8)
        ),
        "instructions": _chat("echo x", [{"role": "system", "content": "a"}] * OBJECTS),
        "empty messages": _chat("echo x", [{"role": "assistant"}] * OBJECTS),
        "too long a history": _chat("echo x", turns * 40_000),
        "items": _chat([{"type": "text", "text": ""}] * OBJECTS),
        "items of nothing": _chat([{}] * OBJECTS),
        "a data URL": _chat([_image("data:image/png;base64," + "A" * (BODY - 1000))]),
        **{f"a data URL of {fill}": _chat([_image(url)]) for fill, url in urls.items()},
        "a URL": _chat([_image("https://" + fill_up("a.", BODY - 1000))]),
        "a file": _chat([{"type": "file", "file": {"file_data": "!" * (BODY - 1000)}}]),
        "a name of a file": _chat(
            [{"type": "file", "file": {"file_data": "", "filename": "." * (BODY - 1000)}}]
        ),
        "a format": _chat(
            [{"type": "input_audio", "input_audio": {"data": "", "format": "/" * (BODY - 1000)}}]
        ),
        "a model": {**_chat("x"), "model": "/" * (BODY - 1000)},
        "roles": _chat("x", [{"role": "x" * (BODY - 1000), "content": "x"}]),
        "tools": _chat(
            "echo x", tools=[{"type": "function", "function": {"name": "x"}}] * (VALUES // 5)
        ),
        "members": _chat("echo x", **{f"k{n}": 1 for n in range(49_000)}),
        "a chosen tool": _chat("x", tool_choice=[1] * 90_000),
    }


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _run(content: Any, before: Any = (), **more: Any) -> dict[str, Any]:
    said = [*before, {"id": "m", **_user(content)}]
    return {"threadId": "t", "runId": f"r{next(_NUMBERS)}", "messages": said, **more}


def _list_runs() -> dict[str, Any]:
    heard = {"id": "h", **_user("a")}
    entry = {"interruptId": "x:1", "status": "resolved", "payload": "x"}
    media = {
        "type": "image",
        "source": {"type": "data", "value": "", "mimeType": "/" * (BODY - 1000)},
    }
    return {
        PLAIN: _run("echo " + fill_up(PLAIN)),
        "a long history": _run("echo x", [heard, {**heard, "role": "assistant"}] * (OBJECTS // 2)),
        "many new messages": _run("echo x", [heard] * OBJECTS),
        "resume": _run("x", resume=[entry] * OBJECTS),
        "an interrupt": _run("x", resume=[{**entry, "interruptId": ":" * (BODY - 1000)}]),
        "a number": _run("x", resume=[{**entry, "interruptId": "x:" + "9" * (BODY - 1000)}]),
        "a payload": _run("x", resume=[{**entry, "payload": [1] * 90_000}]),
        "items": _run([{"type": "text", "text": ""}] * OBJECTS),
        "items of nothing": _run([None] * 90_000),
        "a type of media": _run([media]),
        "tools": _run("echo x", tools=[{"name": "x"}] * OBJECTS, state=[1] * 20_000),
        **{name: {**_run("echo x"), name: "/" * (BODY - 1000)} for name in ("threadId", "runId")},
    }


def _call(version: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return message("tools/call", {"name": "demo", "arguments": arguments, **more}, version=version)


def _list_calls(version: str) -> dict[str, Any]:
    others = {
        "arguments": _call(version, {f"k{n}": 1 for n in range(49_000)}),
        "a list of arguments": _call(version, [1] * 90_000),
        "data": _call(
            version, {"message": "echo x", "data": {f"k{n}": "x" for n in range(45_000)}}
        ),
        "a task": _call(version, {"message": "x", "task": "/" * (BODY - 1000)}),
        "a context": _call(version, {"message": "x", "context": "/" * (BODY - 1000)}),
        "a state": _call(
            version, {"message": "x"}, requestState=":" * (BODY - 1000), inputResponses={}
        ),
        "answers": _call(
            version,
            {"message": "x"},
            requestState="x:y:z",
            inputResponses={f"k{n}": {"action": "accept"} for n in range(20_000)},
        ),
        "a name": message(
            "tools/call", {"name": "/" * (BODY - 1000), "arguments": {}}, version=version
        ),
        "a method": message("/" * (BODY - 1000), {}, version=version),
        "an id": message("tools/list", {}, version=version, number="9" * (BODY - 1000)),
        "a cursor": message("tools/list", {"cursor": "9" * (BODY - 1000)}, version=version),
        "a handle": message(
            "tasks/get",
            {"taskId": "/" * (BODY - 1000)},
            version=version,
            can={"extensions": {"io.modelcontextprotocol/tasks": {}}},
        ),
        "abilities": message(
            "tools/list", {}, version=version, can={f"k{n}": {} for n in range(45_000)}
        ),
        "a cancelled call": {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": "x" * (BODY - 1000)},
        },
        "a hello": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "x" * 2_000_000,
                "capabilities": {f"k{n}": {} for n in range(40_000)},
                "clientInfo": {"name": "x" * 1_000_000, "version": "1"},
            },
        },
        "an answer": {"jsonrpc": "2.0", "id": 1, "result": {f"k{n}": 1 for n in range(45_000)}},
        "a list of messages": [message("ping", {}, version=OLD)] * (VALUES // 6),
    }
    return {PLAIN: _call(version, {"message": "echo " + fill_up(PLAIN)}), **others}


def _mcp(version: str) -> Protocol:
    heads = tuple(
        f"{name}: {value}"
        for name, value in head_of("tools/call", {"name": "demo"}, version).items()
        if name != "content-type"
    )
    return Protocol(
        f"MCP {version}",
        "/mcp",
        lambda text: _call(version, {"message": text}),
        lambda: _list_calls(version),
        heads,
    )


PROTOCOLS = (
    Protocol("completion", "/v1/chat/completions", _chat, _list_chats),
    Protocol(
        "streamed completion", "/v1/chat/completions", lambda text: _chat(text, stream=True), dict
    ),
    Protocol("run", "/agents/demo/ag-ui", _run, _list_runs),
    _mcp(NEW),
    _mcp(OLD),
)


def list_requests(protocol: Protocol) -> Iterator[Odd]:
    """Yield requests at the limits, that of plain letters before the odd ones."""
    for door, bodies in (
        ("text", _list_texts(protocol)),
        ("data", _list_data(protocol)),
        ("others", _list_others(protocol)),
    ):
        for kind, body in bodies.items():
            yield Odd(f"{protocol.name} {door}", kind, protocol.request(body))


def _list_texts(protocol: Protocol) -> Bodies:
    escaped = {
        f"raw {unit}": protocol.raw(f'"echo {unit * (BODY // len(unit))}"') for unit in ESCAPES
    }
    return {
        fill: protocol.write("echo " + fill_up(fill)) for fill in (PLAIN, *FILLS[::3])
    } | escaped


def _list_data(protocol: Protocol) -> Bodies:
    """Return bodies with a value where a text belongs."""
    return {kind: protocol.raw(value) for kind, value in list_values().items()}


def _list_others(protocol: Protocol) -> Bodies:
    return {kind: json.dumps(body).encode() for kind, body in protocol.others().items()}


def list_heads() -> list[Door]:
    """Return the doors for a text in a head of a small request."""
    small = [
        (protocol.path, protocol.write(""))
        for protocol in PROTOCOLS
        if protocol.name != "streamed completion"
    ]

    def head(path: str, body: bytes, name: str) -> Callable[[bytes], bytes]:
        verb = b"POST " if body else b"GET "
        heads = [b"Content-Type: application/json"] if body else []
        line = verb + path.encode() + b" HTTP/1.1"
        return lambda text: make_request(line, [*heads, name.encode() + b": " + text], body)

    doors = [
        Door(f"{path} {name}", head(path, body, name), HEAD)
        for path, body in dict([*small, (CATALOG, b"")]).items()
        for name in NAMES
    ]
    places = (
        "/v1/models/",
        "/.well-known/ai-catalog.json?",
        "/.well-known/oauth-protected-resource/",
        "/agents/demo/mcp?",
        "/v1/chat/",
    )
    return [*doors, *(Door(place, head_place(place)) for place in places)]


def head_place(place: str) -> Callable[[bytes], bytes]:
    return lambda text: make_request(b"GET " + place.encode() + text + b" HTTP/1.1", [])
