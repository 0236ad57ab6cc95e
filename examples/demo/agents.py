"""The demo agent: the first word of the text is its command; conformance kits use the message id (`conformance.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from a2a_tasks.agents import (
    Agent,
    AgentError,
    Part,
    Provider,
    Skill,
    Turn,
    data,
    file,
    link,
)
from examples.demo import conformance

Words = AsyncIterator[Any]
MAX_CHUNKS = 100_000
MAX_SECONDS_LENGTH = 86_400
#: The form of `form`.
TRIP = {
    "type": "object",
    "title": "A trip",
    "properties": {
        "to": {"type": "string", "title": "Where to", "enum": ["Rome", "Oslo", "Lima"]},
        "people": {"type": "integer", "title": "How many people", "minimum": 1, "maximum": 9},
        "window": {"type": "boolean", "title": "At the window, if there is a seat"},
        "wishes": {"type": "string", "title": "Wishes", "maxLength": 500},
        "sure": {"type": "boolean", "title": "Book it now", "description": "It costs nothing."},
    },
    "required": ["to", "people", "sure"],
}


async def echo(turn: Turn, argument: str) -> Words:
    yield turn.artifact(argument, id="echo", name="echo")


async def chunks(turn: Turn, argument: str) -> Words:
    """Handle `chunks N [DELAY]`: after DELAY seconds, send one artifact in N pieces; piece i holds `#i;`."""
    number, _, delay = argument.partition(" ")
    if not number.isdecimal() or not 1 <= int(number) <= MAX_CHUNKS:
        raise AgentError(f"chunks N [DELAY]: N must be from 1 to {MAX_CHUNKS}")
    if delay:
        yield turn.working()
        await asyncio.sleep(seconds(delay))
    stream, last = turn.stream("chunks"), int(number) - 1
    for i in range(last + 1):
        yield stream.write(f"#{i};".ljust(32, "."), last=i == last)


async def count(turn: Turn, argument: str) -> Words:
    """Handle `count N [SECONDS]`: count to N in one artifact, a number every half second, or every so many seconds."""
    number, _, pause = argument.partition(" ")
    if not number.isdecimal() or not 1 <= int(number) <= MAX_CHUNKS:
        raise AgentError(f"count N [SECONDS]: N must be from 1 to {MAX_CHUNKS}")
    stream, last, wait = turn.stream("count"), int(number), seconds(pause or "0.5")
    for i in range(1, last + 1):
        yield stream.write(f"{i} ", last=i == last)
        if i < last:
            await asyncio.sleep(wait)


def seconds(text: str) -> float:
    """Read a number of seconds up to a day. Raises AgentError."""
    try:
        found = float(text)
    except ValueError:
        raise AgentError(f"{text!r} is not a number of seconds") from None
    if not 0 <= found <= MAX_SECONDS_LENGTH:  # also false for NaN
        raise AgentError(f"seconds must be from 0 to {MAX_SECONDS_LENGTH}")
    return found


async def sleep(turn: Turn, argument: str) -> Words:
    yield turn.working(f"Sleeping {argument} s")
    await asyncio.sleep(seconds(argument))
    yield turn.artifact(f"Slept {argument} s", id="sleep", name="sleep")


async def ask(turn: Turn, argument: str) -> Words:
    turn.memory["asked"] = argument
    yield turn.ask(argument or "What is it?")


async def form(turn: Turn, argument: str) -> Words:
    """Handle `form`: ask for several things of several types, and return the answer."""
    turn.memory["form"] = True
    given = await turn.answer
    if given is None:
        yield turn.ask(argument or "Where shall I book?", form=TRIP)
        return
    del turn.memory["form"]
    yield turn.artifact(data(given), id="trip", name="trip")


async def auth(turn: Turn, argument: str) -> Words:
    turn.memory["asked"] = argument
    yield turn.need_auth(
        f"A credential is needed: {argument}" if argument else "A credential is needed"
    )


async def secret(turn: Turn, argument: str) -> Words:
    """Handle `secret NAME [SECONDS]`: ask for a secret; after so many seconds, show only its length."""
    name, _, delay = argument.partition(" ")
    name = turn.memory.setdefault("secret", name or "password")
    turn.memory.setdefault("delay", seconds(delay) if delay else 0.0)
    handed = await turn.secret(name)
    if handed is None:
        yield turn.need_auth("To show how a secret is handed over.", hand_over=name)
        return
    yield turn.working("I have it")
    await asyncio.sleep(turn.memory["delay"])
    yield turn.artifact(f"{name} has {len(handed)} characters", id="secret", name="secret")


async def reject(turn: Turn, argument: str) -> Words:
    yield turn.reject(argument or "Rejected")


async def fail(turn: Turn, argument: str) -> Words:
    yield turn.fail(argument or "Failed")


async def message(turn: Turn, argument: str) -> Words:
    yield turn.reply(argument or "Hello")


async def send_file(turn: Turn, argument: str) -> Words:
    content = (argument or "A small file of the demo agent.\n").encode()
    yield turn.artifact(file(content, "demo.txt", "text/plain"), id="file", name="file")
    url = "https://example.com/demo.txt"
    yield turn.artifact(
        link(url, filename="demo.txt", media_type="text/plain"), id="link", name="link"
    )


async def send_data(turn: Turn, argument: str) -> Words:
    yield turn.artifact(data({"said": argument, "length": len(argument)}), id="data", name="data")


async def call(turn: Turn, argument: str) -> Words:
    """Handle `call TEXT`: another task of this agent gets TEXT, as another agent would; its questions and answer are this task's."""
    done = await turn.call("demo", argument)
    yield turn.fail(done.text) if done.failed else turn.artifact(done.text, id="call", name="call")


async def anything(turn: Turn, argument: str) -> Words:
    """Return the input with a list of the commands."""
    greeting = "You sent this. Try: echo X, chunks N, count N, sleep S, ask X, form, auth X, secret X, reject X, fail X, "
    yield turn.artifact(
        Part(text=f"{greeting}message X, file, data, call TEXT."),
        *turn.parts,
        id="parts",
        name="parts",
    )


VERBS: dict[str, Callable[[Turn, str], Words]] = {
    "echo": echo,
    "chunks": chunks,
    "count": count,
    "sleep": sleep,
    "slow": sleep,
    "ask": ask,
    "form": form,
    "auth": auth,
    "secret": secret,
    "reject": reject,
    "fail": fail,
    "message": message,
    "file": send_file,
    "data": send_data,
    "call": call,
}


async def answer_asked(turn: Turn) -> Words:
    """Answer the turn after `ask` or `auth`."""
    del turn.memory["asked"]
    yield turn.artifact(
        turn.text or "Thank you.", name="answer", id=f"answer-{turn.message.message_id}"
    )


def obey(turn: Turn) -> Words:
    """Return the answer to a turn, by message id, by the question asked before, or by the first word."""
    script = conformance.script(turn)
    if script is not None:
        return script
    if "asked" in turn.memory:
        return answer_asked(turn)
    if "form" in turn.memory:
        return form(turn, "")
    if "secret" in turn.memory:
        return secret(turn, "")
    verb, _, argument = turn.text.lstrip().partition(" ")
    if verb == "echo":
        return echo(turn, argument)
    return VERBS.get(verb.rstrip(), anything)(turn, argument.strip())


class Demo(Agent):
    """The default agent of the embedded host."""

    name = "Demo"
    description = "Obeys the first word: echo, chunks, count, sleep, ask, form, auth, reject, fail, message, file, data, call."
    provider = Provider("A2A host", "https://example.com")
    default_input_modes = ("text/plain", "*/*")
    default_output_modes = ("text/plain", "application/json")
    replies_directly = True
    push_notifications = True
    calls = ("demo",)
    recursive = True
    skills = [
        Skill(
            "echo",
            "Echo",
            "Gives the text back as an artifact",
            tags=["demo", "text"],
            examples=["echo hello"],
        ),
        Skill(
            "chunks",
            "Chunks",
            "Streams one artifact in N pieces, at once or by and by",
            tags=["demo", "streaming"],
            examples=["chunks 10", "count 20"],
        ),
        Skill(
            "conversation",
            "Conversation",
            "Asks, waits, fails, rejects or replies directly, as the text requests",
            tags=["demo", "multi-turn"],
            examples=["ask What is your name?", "form", "sleep 3", "message hi"],
        ),
    ]

    async def run(self, turn: Turn) -> Words:
        """Run the command of the turn."""
        async for said in obey(turn):
            yield said
