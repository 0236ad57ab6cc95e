"""Golden conversations: transcripts in YAML, played against the host and compared strictly.

A file is a list of conversations, each a list of steps:

    - conversation: a send waits until the task has ended
      settings: {A2A_V01_REOPEN_TERMINAL: false}     the host's, if the conversation needs others
      steps:
      - client: POST /agents/actor/a2a/0.0           verb and path; `as: observer` for a second client
        with: {A2A-Version: "0.0"}                   headers beside content-type
        says: |                                      the body, byte for byte
          {"jsonrpc": "2.0", "id": 1, ...}
      - agent: [{works: Thinking}, {artifact: out, parts: hello, last: true}, end]
      - host: 200 application/json                   status and content type of the answer; `to: observer`
        says: |                                      the body: JSON that must be equal, to the last member and type; of a
                                                     stream that is refused, its only event
          {"jsonrpc": "2.0", "id": 1, "result": {"id": "trip", ...}}
      - host: 200 text/event-stream
      - stream:                                      the next items of the client's stream, perhaps its end
        - |
          {"jsonrpc": "2.0", "id": 1, "result": {"id": "trip", ...}}
        - end

Only what the host makes up is a placeholder: `<name>` inside a string of an answer. It is bound where it comes first
and must be equal wherever it comes again; other names stand for other values. Names that begin with `at` are moments
(RFC 3339, UTC, milliseconds; two may be the same). In requests a placeholder is replaced by what it was bound to.

`polls:` is `client:` for one who asks again until the answer is the one that follows: the host writes down what an
agent says when it gets to it, and no other step tells when that was.

An agent that is spoken to takes the turn with its first step (`begins`, if it has nothing to say) and ends it with
`end`; `is stopped` waits until the host has stopped it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from a2a_project.asgi import application
from a2a_tasks.agents.emission import Chunk, Emission, Reply, StatusUpdate
from a2a_tasks.protocol.values import Part, TaskState
from tests.support.bindings.client import Client, Exchange, Response, Stream
from tests.support.bindings.puppet import Hand, Puppet

__all__ = ["GOLDEN", "Conversation", "Stage", "conversations", "document", "match", "play"]

GOLDEN = Path(__file__).parent / "golden"
PATIENCE = 20.0
PAUSE = 0.01
END = "end"
NAME = re.compile(r"<([a-z][a-z0-9 -]*)>")
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@dataclass(frozen=True)
class Conversation:
    """One conversation of a file."""

    dialect: str
    name: str
    steps: list[dict[str, Any]]
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.dialect}: {self.name}"


@functools.cache
def _read(path: Path) -> Any:
    """A file of conversations, read by the library in C if there is one: they are long."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_bytes(), loader)  # noqa: S506 - either is safe


def conversations(dialect: str = "*") -> list[Conversation]:
    """The conversations of a dialect's file, or of all files."""
    return [
        Conversation(path.stem, told["conversation"], told["steps"], told.get("settings", {}))
        for path in sorted(GOLDEN.glob(f"{dialect}.yaml"))
        for told in _read(path)
    ]


@dataclass
class Stage:
    """The agents that are led."""

    actors: Mapping[str, Puppet]


# --- comparing ---------------------------------------------------------------------------------


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member was written twice: {[key for key, _ in pairs]}"
    return members


def document(text: str | bytes) -> Any:
    """JSON, in which no object says a member twice."""
    return json.loads(text, object_pairs_hook=_once)


def _moment(name: str) -> bool:
    return name.split()[0] == "at"


def _text_differs(expected: str, given: str, bound: dict[str, str]) -> bool:
    """Does a text differ from the expected one? Binds the placeholders that come here first."""
    pattern, fresh = "", []
    for index, piece in enumerate(NAME.split(expected)):
        if index % 2 == 0 or piece in bound:
            pattern += re.escape(bound[piece] if index % 2 else piece)
        else:
            fresh.append(piece)
            pattern += f"({MOMENT})" if _moment(piece) else "(.+)"
    found = re.fullmatch(pattern, given, re.DOTALL)
    if found is None:
        return True
    for name, value in zip(fresh, found.groups(), strict=True):
        if not _moment(name) and value in bound.values():
            return True
        bound[name] = value
    return False


def match(expected: Any, given: Any, bound: dict[str, str], path: str = "$") -> list[str]:
    """What differs between two documents; nothing, if they are equal to the last member and type."""
    if type(expected) is not type(given):
        return [f"{path}: expected {expected!r}, was given {given!r}"]
    if isinstance(expected, dict):
        return _members(expected, given, bound, path)
    if isinstance(expected, list):
        found = (
            [] if len(expected) == len(given) else [f"{path}: {len(expected)} expected: {given}"]
        )
        for index, (one, other) in enumerate(zip(expected, given, strict=False)):
            found += match(one, other, bound, f"{path}[{index}]")
        return found
    differs = (
        _text_differs(expected, given, bound) if isinstance(expected, str) else expected != given
    )
    return [f"{path}: expected {_shown(expected, bound)}, was given {given!r}"] if differs else []


def _members(
    expected: dict[str, Any], given: dict[str, Any], bound: dict[str, str], path: str
) -> list[str]:
    found = []
    for key, value in expected.items():
        if key not in given:
            found.append(f"{path}.{key}: missing, expected {_shown(value, bound)}")
        else:
            found += match(value, given[key], bound, f"{path}.{key}")
    return found + [f"{path}.{key}: too much: {given[key]!r}" for key in given.keys() - expected]


def _shown(value: Any, bound: Mapping[str, str]) -> str:
    return NAME.sub(lambda name: bound.get(name[1], name[0]), json.dumps(value))


# --- the agent's words -------------------------------------------------------------------------

_STATES = {
    "works": TaskState.WORKING,
    "asks": TaskState.INPUT_REQUIRED,
    "needs auth": TaskState.AUTH_REQUIRED,
    "completes": TaskState.COMPLETED,
    "fails": TaskState.FAILED,
    "rejects": TaskState.REJECTED,
}


def _parts(said: Any) -> tuple[Part, ...]:
    """A text, or a list of parts as A2A 1.0 writes them."""
    if said is None:
        return ()
    if isinstance(said, str):
        return (Part(text=said),)
    return msgspec.convert(said, tuple[Part, ...])


def _emission(word: Mapping[str, Any]) -> Emission:
    """A word of the transcript, as the agent yields it."""
    for verb, state in _STATES.items():
        if verb in word:
            return StatusUpdate(state, _parts(word[verb]))
    if "replies" in word:
        return Reply(_parts(word["replies"]))
    about = {key: word.get(key) for key in ("name", "description", "metadata")}
    return Chunk(
        artifact_id=word["artifact"],
        parts=_parts(word["parts"]),
        append=bool(word.get("append")),
        last=bool(word.get("last")),
        extensions=tuple(word.get("extensions", ())),
        **about,
    )


# --- playing -----------------------------------------------------------------------------------


@dataclass
class _Call:
    """A request of one client, and what came of it so far."""

    request: Mapping[str, Any]
    exchange: Exchange
    stream: Stream | None = None


@dataclass
class _Play:
    stage: Stage
    bound: dict[str, str] = field(default_factory=dict)
    calls: dict[str, _Call] = field(default_factory=dict)
    hand: Hand | None = None

    def filled(self, text: str) -> str:
        """A request's text, with what placeholders were bound to."""
        return NAME.sub(lambda name: self.bound[name[1]], text)

    def begin(self, step: Mapping[str, Any]) -> _Call:
        verb, path = self.filled(step.get("client") or step["polls"]).split(" ", 1)
        body = self.filled(step.get("says", "")).rstrip("\n").encode()
        headers = {"content-type": "application/json"} if body else {}
        headers |= {key.lower(): value for key, value in step.get("with", {}).items()}
        exchange = Client(application).exchange(verb, path, headers)
        exchange.upload(body)
        return _Call(step, exchange)

    async def client(self, step: Mapping[str, Any]) -> None:
        who = step.get("as", "client")
        await self.leave(who)
        self.calls[who] = self.begin(step)

    polls = client

    async def leave(self, who: str) -> None:
        call = self.calls.pop(who, None)
        if call is not None:
            call.exchange.leave()
            await call.exchange.over()

    async def host(self, step: Mapping[str, Any]) -> None:
        who, deadline = step.get("to", "client"), time.monotonic() + PATIENCE
        while problems := await self.answered(self.calls[who], step):
            again = "polls" in self.calls[who].request and time.monotonic() < deadline
            assert again, "\n".join(problems)
            await asyncio.sleep(PAUSE)
            self.calls[who] = self.begin(self.calls[who].request)

    async def answered(self, call: _Call, step: Mapping[str, Any]) -> list[str]:
        """What differs between the answer and the one expected; of a stream, only its beginning."""
        await call.exchange.begin()
        response = Response(call.exchange.status, call.exchange.headers, b"")
        expected, given = self.status(step), (response.status, response.header("content-type"))
        if expected == given == (200, "text/event-stream") and "says" not in step:
            call.stream = Stream(call.exchange)
            return []
        return await self.compare(call, step)

    @staticmethod
    def status(step: Mapping[str, Any]) -> tuple[int, str | None]:
        status, _, content_type = step["host"].partition(" ")
        return int(status), content_type or None

    async def compare(self, call: _Call, step: Mapping[str, Any]) -> list[str]:
        """What differs between the whole answer and the one expected. The headers are here."""
        pieces = []
        while (piece := await call.exchange.piece()) is not None:
            pieces.append(piece)
        await call.exchange.over()
        response = Response(call.exchange.status, call.exchange.headers, b"".join(pieces))
        given = response.status, response.header("content-type") if response.body else None
        if given != self.status(step):
            return [f"expected {step['host']}, was given {given}: {response.body.decode()}"]
        if "says" not in step:
            return [f"expected no body: {response.body!r}"] if response.body else []
        answer, bound = document(response.body.removeprefix(b"data: ")), dict(self.bound)
        problems = match(document(step["says"]), answer, bound)
        if not problems:
            self.bound = bound
            return []
        return [*problems, f"in {json.dumps(answer)}"]

    async def stream(self, step: Mapping[str, Any]) -> None:
        call = self.calls[step.get("to", "client")]
        assert call.stream is not None, "the answer was no stream"
        for text in step["stream"]:
            event = await call.stream.next()
            if text == END:
                assert event is None, f"the stream goes on: {event}"
                await call.exchange.over()
                continue
            assert event is not None, f"the stream ended before {text}"
            problems = match(document(text), event.data, self.bound)
            assert not problems, "\n".join([*problems, f"in {json.dumps(event.data)}"])

    async def agent(self, step: Mapping[str, Any]) -> None:
        hand = self.hand = self.hand or await self.stage.actors[step.get("named", "actor")].hand()
        for word in step["agent"]:
            if word == "is stopped":
                await hand.ended()
                self.hand = None
            elif word == END:
                hand.end()
                self.hand = None
            elif word != "begins":
                hand.say(_emission(word))


_VERBS = ("client", "polls", "host", "stream", "agent")


async def play(conversation: Conversation, stage: Stage) -> None:
    """Play a conversation; what goes otherwise than written fails."""
    playing = _Play(stage)
    try:
        for number, step in enumerate(conversation.steps, 1):
            verb = next(verb for verb in _VERBS if verb in step)
            try:
                await getattr(playing, verb)(step)
            except Exception as fault:
                fault.add_note(f"in step {number}: {verb} {step[verb]}")
                raise
    finally:
        if playing.hand is not None:
            playing.hand.end()
        for who in list(playing.calls):
            await playing.leave(who)
