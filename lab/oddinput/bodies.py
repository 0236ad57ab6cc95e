"""Messages at the limits, in the dialects of JSON-RPC and in HTTP+JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lab.oddinput.doors import BODY, FILLS, PLAIN, Odd, make_request

__all__ = [
    "DIALECTS",
    "ESCAPES",
    "VALUES",
    "Bodies",
    "Writer",
    "fill_up",
    "list_answers",
    "list_bodies",
    "list_values",
]

#: Values that a body may have, and members of an object; the host takes 100,000 and 50,000.
VALUES, MEMBERS = 99_000, 50_000
ESCAPES = ("\\u00e4", "\\ud83d\\ude00", "\\ud83d", "\\u0000", '\\"', "\\\\", "\\n")
#: Bodies by what is odd about them.
Bodies = dict[str, bytes]


@dataclass(frozen=True)
class Writer:
    """Writes the requests of a dialect."""

    version: str
    rest: bool = False
    #: The task that each message is for.
    task: str = ""

    @property
    def name(self) -> str:
        answer = " answer" if self.task else ""
        return f"{self.version} {'REST' if self.rest else 'JSON-RPC'}{answer}"

    @property
    def is_old(self) -> bool:
        return self.version != "1.0"

    def request(self, body: bytes) -> bytes:
        """Write the head."""
        heads = [b"Content-Type: application/json", f"A2A-Version: {self.version}".encode()]
        path = "/agents/demo/message:send" if self.rest else "/agents/demo/"
        return make_request(f"POST {path} HTTP/1.1".encode(), heads, body)

    def call(self, method: str, params: Any) -> bytes:
        """Write a call of JSON-RPC."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json.dumps(body).encode()

    def send(
        self, parts: Any = ({"text": "echo hello"},), more: Any = None, **message: Any
    ) -> bytes:
        """Write a message, and members beside it."""
        said = {"messageId": "m", "role": "ROLE_USER", "parts": list(parts)}
        said |= {**({"taskId": self.task} if self.task else {}), **message}
        if self.is_old:
            said = {**said, "role": "user", "kind": "message"}
            said["parts"] = [{"kind": "text", **p} if "text" in p else p for p in said["parts"]]
        params = {"message": said, **(more or {})}
        if self.rest:
            return json.dumps(params).encode()
        return self.call("message/send" if self.is_old else "SendMessage", params)

    def say(self, text: str) -> bytes:
        """Write a text, by Python's JSON."""
        return self.send([{"text": "echo " + text}])

    def raw(self, text: str) -> bytes:
        """Write a text that is JSON already."""
        return self.send([{"text": "MARK"}]).replace(b'"MARK"', text.encode())

    def data(self, value: str) -> bytes:
        """Write a data part with a value that is JSON already."""
        part = {"kind": "data", "data": {"x": "MARK"}} if self.is_old else {"data": "MARK"}
        return self.send([part]).replace(b'"MARK"', value.encode())

    def file(self, content: str) -> bytes:
        """Write a file."""
        old = {"kind": "file", "file": {"bytes": content}}
        return self.send([old if self.is_old else {"raw": content}])

    def hook(self, url: str) -> bytes:
        """Write a message with a webhook."""
        name = "pushNotificationConfig" if self.is_old else "taskPushNotificationConfig"
        config = {name: {"url": url, "token": url, "id": url}}
        return self.send(more={"configuration": config})


DIALECTS = (Writer("1.0"), Writer("0.3"), Writer("1.0", rest=True))


def list_bodies(writer: Writer) -> Iterator[Odd]:
    """Yield bodies at the limits, those of plain letters before the odd ones of their door."""
    for door, make in MAKERS.items():
        for what, body in make(writer).items():
            yield Odd(f"{writer.name} {door}", what, writer.request(body))


def list_answers(task: str) -> Iterator[Odd]:
    """Yield answers to the form of a task that the form refuses, so that the task waits for the next one."""
    writer = Writer("1.0", task=task)
    for door in ("text", "data", "file"):
        for what, body in MAKERS[door](writer).items():
            yield Odd(f"{writer.name} {door}", what, writer.request(body))
    for name in ("to", "people", "window", "wishes", "nothing"):
        for fill in (PLAIN, *FILLS):
            answer = json.dumps({"people": 99, name: fill_up(fill)})
            yield Odd(f"{writer.name} {name}", fill, writer.request(writer.data(answer)))


def fill_up(fill: str, size: int = BODY) -> str:
    """Return a text whose JSON has about that many bytes."""
    return fill * (size // (len(json.dumps(fill)) - 2))


def _list(value: str, count: int = VALUES) -> str:
    return f"[{','.join([value] * count)}]"


def _texts(writer: Writer) -> Bodies:
    escaped = {f"raw {unit}": writer.raw(f'"{unit * (BODY // len(unit))}"') for unit in ESCAPES}
    return {fill: writer.say(fill_up(fill)) for fill in (PLAIN, *FILLS)} | escaped


def list_values() -> dict[str, str]:
    """Return the JSON of values at the limits."""
    return {
        PLAIN: f'"{PLAIN * BODY}"',
        "numbers": _list("1"),
        "floats": _list("0." + "1" * 35),
        "a long integer": "9" * BODY,
        "a long float": "0." + "9" * BODY,
        "a long exponent": "1e" + "9" * BODY,
        "deep lists": "[" * 60 + "]" * 60,
        "too deep lists": "[" * (BODY // 2) + "]" * (BODY // 2),
        "many deep lists": _list("[" * 50 + "]" * 50, 1900),
        "half as many deep lists": _list("[" * 50 + "]" * 50, 950),
        "unclosed": "[" * BODY,
        "empty objects": _list("{}", VALUES // 2),
        "objects": _list('{"a":1}', VALUES // 2),
        "too many": _list("1", 1_900_000),
        "keys": "{" + ",".join(f'"k{n}":1' for n in range(MEMBERS)) + "}",
        "texts by key": "{" + ",".join(f'"k{n}":"x"' for n in range(MEMBERS)) + "}",
        "too many keys": "{" + ",".join(f'"k{n}":"x"' for n in range(VALUES)) + "}",
        "the same key": "{" + ",".join(['"k":1'] * VALUES) + "}",
        "long keys": "{" + ",".join(f'"{n:038d}":1' for n in range(MEMBERS)) + "}",
        "spaces": " " * BODY + "1",
        "brackets in texts": '["' + '\\",[' * (BODY // 4) + '"]',
    }


def _data(writer: Writer) -> Bodies:
    return {what: writer.data(value) for what, value in list_values().items()}


def _files(writer: Writer) -> Bodies:
    contents = {
        PLAIN: PLAIN * BODY,
        "url-safe": "-_-_" * (BODY // 4),
        "no base64": "!" * BODY,
        "padding": "=" * BODY,
        "lines": ("A" * 76 + "\n") * (BODY // 78),
        "letters": "ä" * (BODY // 6),
    }
    return {what: writer.file(content) for what, content in contents.items()}


def _names(name: str) -> Any:
    return lambda writer: {
        fill: writer.send(**{name: fill_up(fill, BODY // 2)}) for fill in (PLAIN, *FILLS[:12])
    }


def _hooks(writer: Writer) -> Bodies:
    plain = {PLAIN: writer.hook("https://example.com/" + fill_up(PLAIN, BODY // 3))}
    long = {fill: writer.hook("https://" + fill_up(fill, BODY // 3)) for fill in FILLS}
    short = {f"short {fill}": writer.hook("https://" + (fill * 2048)[:2030]) for fill in FILLS}
    return plain | long | short


def _others(writer: Writer) -> Bodies:
    wide = {f"k{n}": n for n in range(90_000)}
    return {
        PLAIN: writer.say(fill_up(PLAIN)),
        "100 parts": writer.send([{"text": "x" * 30_000}] * 100),
        "too many parts": writer.send([{"text": ""}] * 30_000),
        "extensions": writer.send(extensions=["urn:x"] * VALUES),
        "references": writer.send(referenceTaskIds=["x"] * VALUES),
        "metadata": writer.send(metadata={f"k{n}": "x" * 200 for n in range(256)}),
        "much metadata": writer.send(metadata=wide),
        "modes": writer.send(more={"configuration": {"acceptedOutputModes": ["a/b"] * VALUES}}),
        "members": writer.send(**wide),
        "a list of calls": b"[" + b",".join([writer.call("GetTask", {"id": "x"})] * 20_000) + b"]",
        "method": writer.call(PLAIN * BODY, {}),
        "id": b'{"jsonrpc":"2.0","method":"GetTask","id":' + b"9" * BODY + b"}",
        "no JSON": b"\xff" * BODY,
        "spaces": b" " * BODY,
    }


MAKERS: dict[str, Any] = {
    "text": _texts,
    "data": _data,
    "file": _files,
    "messageId": _names("messageId"),
    "taskId": _names("taskId"),
    "contextId": _names("contextId"),
    "push URL": _hooks,
    "others": _others,
}
