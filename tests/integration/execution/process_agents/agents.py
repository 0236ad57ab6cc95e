"""An agent in a process that does what the first word of the text says; the second may be a directory for its traces.

A trace is an empty file: it says that something has happened there, and the test may leave one for the agent.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientError
from django.contrib.auth.models import User

from a2a_tasks.agents import (
    Agent,
    AgentError,
    CallRefused,
    FileUnavailable,
    Skill,
    Turn,
    data,
    file,
)
from tests.support.agents_under_test import look_at_nothing, until_told

#: How long a script waits for its test, in seconds.
PATIENCE = 60


class Script(Agent):
    """Does what it is told, in a process."""

    slug = "script-in-a-process"
    name = "Script"
    description = "Does as the test says."
    runs_in = "process"
    queue = "processes"
    default_input_modes = ("*/*",)
    skills = [Skill("script", "Script", "Does as the test says.", tags=["test"])]
    forwarded_headers = ("x-user-id",)
    calls = "*"

    def run(self, turn: Turn) -> Any:
        """Obey the first word."""
        return globals()[turn.text.split()[0].lower()](turn)


async def paying(turn: Turn) -> AsyncIterator[Any]:
    """Call a tool of an MCP server."""
    paid = await turn.mcp("bank").call_tool("pay", {"amount": 1})
    yield paid.content[0].text  # type: ignore[union-attr]


class Careful(Script):
    """The same, but not twice."""

    slug = "careful-in-a-process"
    recursive = True
    after_crash = "fail"


class Cleaning(Script):
    """The same, with something to free when a task is cancelled that waits."""

    slug = "cleaning-in-a-process"

    def cancelled(self, turn: Turn) -> None:
        """Say what is freed; fail or get stuck if the test wants it."""
        if (place(turn) / "broken").exists():
            raise LookupError("no such sandbox")
        if (place(turn) / "stuck").exists():
            look_at_nothing()
        (place(turn) / "pid").write_text(f"{os.getpid()}")
        task = turn.task.now()
        state = task.status.state.word if task else "gone"
        logging.getLogger("cleaning").warning(
            "freed %s in %s, %s", turn.memory["ticket"], os.getpid(), state
        )


def asking_first(turn: Turn) -> Any:
    """Ask, with something to free."""
    turn.memory["ticket"] = 7
    return turn.ask("which?")


def unpicklable(turn: Turn) -> Iterator[Any]:
    """Say what cannot leave the process."""
    yield "x"
    yield (word for word in "abc")


async def calling(turn: Turn) -> AsyncIterator[Any]:
    """Say what the server answers whose URL is the second word, and that an address inside is refused."""
    async with turn.http.get(turn.text.split()[1]) as answer:
        yield await answer.text()
    try:
        await turn.http.get("http://10.0.0.1/")
    except CallRefused as refused:
        yield f" {refused}"


async def delegating(turn: Turn) -> str:
    """Call an agent twice at once, and one that is not there."""
    one, two = await turn.gather(
        turn.call("billing", "7", name="one"), turn.call("billing", "8", name="two")
    )
    try:
        await turn.call("nobody", "x")
    except CallRefused as refused:
        return f"{one.text} {two.text} {refused}"
    return ""


async def going_down(turn: Turn) -> str:
    """Call the careful one as often as the second word says, each time one level down."""
    left = int(turn.text.split()[1])
    if not left:
        return "the leaf"
    return (await turn.call(Careful.slug, f"going_down {left - 1}")).text


def delegating_from_a_thread(turn: Turn) -> str:
    """Call an agent from a thread."""
    return turn.call("billing", "7").now().text


async def swallowing(turn: Turn) -> str:
    """Read all that the server answers whose URL is the second word."""
    async with turn.http.get(turn.text.split()[1]) as answer:
        try:
            return await answer.text()
        except ClientError as fault:
            return str(fault)


def calling_from_a_thread(turn: Turn) -> str:
    """Say why a synchronous agent has no session."""
    try:
        return str(turn.http)
    except RuntimeError as fault:
        return str(fault)


async def unawaited(turn: Turn) -> AsyncIterator[Any]:
    """Forget an `await`."""
    said = asyncio.sleep(0)
    try:
        yield said
    finally:
        said.close()


class TwoWordsError(Exception):
    """Pickled, it cannot be read."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one + other)


def unreadable(turn: Turn) -> Iterator[Any]:
    """Say what can leave the process, but cannot come into the other one."""
    yield TwoWordsError("a", "b")


def ungiven(turn: Turn) -> Iterator[Any]:
    """Say a part of what JSON cannot say, nor pickle."""
    yield data(word for word in "abc")


def counting(turn: Turn) -> Any:
    """Keep a dict whose default cannot leave the process."""
    counts = turn.memory.setdefault("counts", defaultdict(lambda: 0))
    counts[turn.text] = 1
    return str(turn.memory)


def hoarding(turn: Turn) -> str:
    """Leave a memory that cannot leave the process."""
    turn.memory["pattern"] = (word for word in "abc")
    return "x"


def secret(turn: Turn) -> Any:
    """Ask for a secret; the message that comes with it says `Handed over`."""
    return turn.need_auth("Why not?", hand_over="token")


def handed(turn: Turn) -> str:
    """Say how long it is."""
    return f"{len(turn.secret('token').now() or '')} characters"


def place(turn: Turn) -> Path:
    """The directory for the traces."""
    return Path(turn.text.split()[1])


def begin(turn: Turn) -> None:
    """Say that the word before this one was taken."""
    (place(turn) / "begun").touch()


@contextmanager
def at_work(turn: Turn) -> Iterator[None]:
    """Say the same, and in the end that it has ended."""
    begin(turn)
    try:
        yield
    finally:
        (place(turn) / "ended").touch()


def wait_for(trace: Path) -> None:
    """Wait until the test has left it, without looking at anything else."""
    pause = threading.Event()
    for _ in range(PATIENCE * 100):
        if trace.exists():
            return
        pause.wait(0.01)
    raise TimeoutError(trace)


# --- the four kinds -------------------------------------------------------------------------


def plain(turn: Turn) -> str:
    return f"{os.getpid()}"


def generator(turn: Turn) -> Iterator[str]:
    yield "pid "
    yield f"{os.getpid()}"


async def coroutine(turn: Turn) -> str:
    await asyncio.sleep(0)
    return f"{os.getpid()}"


async def async_generator(turn: Turn) -> AsyncIterator[str]:
    yield "pid "
    await asyncio.sleep(0)
    yield f"{os.getpid()}"


def silent(turn: Turn) -> None:
    """Say nothing."""


def talkative(turn: Turn) -> str:
    """Tell the log ten things."""
    for number in range(10):
        logging.getLogger("talkative").info("line %d", number)
    return "told"


async def talkative_loop(turn: Turn) -> str:
    """Tell the log two things from a loop, one of them from a thread of its own making."""
    logging.getLogger("talkative").warning("here")
    await asyncio.to_thread(logging.getLogger("talkative").warning, "there")
    return "told"


# --- mistakes -------------------------------------------------------------------------------


def careless(turn: Turn) -> str:
    """Make a question, and not ask it."""
    turn.ask("Which one?")
    return "told"


def numeric(turn: Turn) -> Iterator[Any]:
    """Say what is no content."""
    yield 42


# --- files ----------------------------------------------------------------------------------


def files(turn: Turn) -> Iterator[Any]:
    """Say how large each is, and why one cannot be had; then give the first one back twice as large."""
    found = []
    for part in turn.parts[1:]:
        try:
            found.append(turn.fetch(part).now())
            yield f"{len(found[-1])};"
        except FileUnavailable as fault:
            yield str(fault)
    yield turn.artifact(file(found[0] * 2, "twice", "x/y"), id="twice")


# --- the turn -------------------------------------------------------------------------------


def facts(turn: Turn) -> Any:
    """Everything a turn knows."""
    return data(
        {
            "text": turn.text,
            "caller": turn.caller.principal,
            "attempt": turn.attempt,
            "modes": list(turn.accepted_output_modes),
            "metadata": turn.metadata,
            "extensions": list(turn.extensions),
            "user": turn.headers.get("X-User-Id"),
            "history": [message.parts[0].text for message in turn.history.now()],
            "references": [task.id for task in turn.references.now()],
            "task": turn.task.now(),
            "cancelled": turn.task_cancelled.now(),
            "ids": [bool(turn.task_id), bool(turn.context_id)],
            "users": User.objects.count(),
        }
    )


async def remember(turn: Turn) -> Any:
    """Count the turns."""
    turn.memory["turns"] = turn.memory.get("turns", 0) + 1
    history = await turn.history
    return turn.ask(f"turn {turn.memory['turns']}, {len(history)} messages")


def converse(turn: Turn) -> str:
    """Keep everything there is to keep in the conversation, and say what was kept before."""
    conversation, memory = turn.conversation, turn.conversation.memory
    log = conversation.items("log").now()
    seen = [memory.get("bytes").now(), memory.get("json").now(), log, conversation.pop("log").now()]
    memory.set("bytes", b"\xff\x00").now()
    memory.set("json", {"n": len(log)}).now()
    conversation.append("log", *log[-1:], len(log)).now()
    memory.set("gone", "x").now()
    memory.delete("gone").now()
    history = [message.parts[0].text for message in conversation.history(10).now()]
    return f"{seen} {memory.get('json').now()} {history}"


async def async_converse(turn: Turn) -> AsyncIterator[Any]:
    """Ask with a memory of the question, then take the answer back."""
    count = await turn.conversation.memory.get("count", 0)
    await turn.conversation.memory.set("count", count + 1)
    if count == 1:
        raise AgentError("Not again")
    yield turn.ask(f"question {count}")
    await turn.conversation.append("asked", count)


async def late(turn: Turn) -> AsyncIterator[Any]:
    """Change the conversation after the question."""
    yield turn.ask("Well?")
    await turn.conversation.append("log", 1)


def overtaken(turn: Turn) -> str:
    """Read, let the test change what was read, and write."""
    turn.conversation.append("log", "old").now()
    with at_work(turn):  # what the test changes now was read before
        wait_for(place(turn) / "go")
    return "done"


def spoken(turn: Turn) -> Iterator[Any]:
    """Say two words, the second when the test wants it; then the last one, after which nothing is done."""
    try:
        yield turn.working("first")
        wait_for(place(turn) / "go")
        page = turn.stream("page")
        yield page.write("a")
        yield page.write("b", last=True)
        yield turn.complete("done")
        (place(turn) / "after the end").touch()
    finally:
        (place(turn) / "closed").touch()


# --- steps ----------------------------------------------------------------------------------


def stepping(turn: Turn) -> Iterator[Any]:
    """Take two steps and a nap; the first attempt dies between them."""
    yield turn.working("here")
    turn.step("one", (place(turn) / f"one of {turn.attempt}").touch).now()
    turn.sleep(0.01).now()
    if turn.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield str(turn.step("two", lambda: turn.attempt).now())


async def async_stepping(turn: Turn) -> AsyncIterator[Any]:
    """Take two steps at a time, one of them in a thread."""
    both = await asyncio.gather(
        turn.step("one", os.getpid), turn.step("two", asyncio.sleep, 0.01, "slept")
    )
    await turn.sleep(0.01)
    try:
        await turn.step("one", os.getpid)
    except ValueError as fault:
        yield f"{both[0] == os.getpid()} {both[1]} {fault}"


#: More than any artifact may have (A2A_MAX_ARTIFACT_BYTES).
MUCH = 70 * 1024 * 1024


def large(turn: Turn) -> Any:
    """Say too much, in the form that is the second word."""
    word = "x" * (MUCH // 70)
    match turn.text.split()[1]:
        case "text":
            return "x" * MUCH
        case "shared":  # pickled, it has 1 MB
            return data([word] * 70)
        case "file":
            return file(bytes(2 * MUCH), "a", "x/y")
        case "step":
            return turn.step("one", lambda: "x" * 2 * MUCH).now()
        case "memory":
            turn.memory["much"] = "x" * 2 * MUCH
            return None
        case "error":
            raise ValueError("x" * 2 * MUCH)
        case _:
            raise AgentError("x" * 2 * MUCH)


def unbounded(turn: Turn) -> Iterator[Any]:
    """Announce a message of 1 GB, without the check of this process."""
    pipes: list[Any] = []
    while not pipes:  # while another thread collects, objects are in no list
        # Not isinstance, which evaluates lazy objects of Django and Celery. A process that was not forked has the class from
        # `__main__`.
        pipes = [one for one in gc.get_objects() if type(one).__name__ == "RunnerPipe"]
    (pipe,) = pipes
    pipe._pipe.sendall((10**9).to_bytes(8) + b"x" * 100_000)
    yield "x"


async def crowding(turn: Turn) -> str:
    """Take large steps, all at once."""
    steps = [turn.step(f"{number}", _large_result) for number in range(8)]
    return f"{sum(map(len, await asyncio.gather(*steps)))}"


async def _large_result() -> str:
    return "x" * 2 * 1024 * 1024


async def resting(turn: Turn) -> AsyncIterator[Any]:
    """Sleep for an hour in the middle of an artifact."""
    page = turn.stream()
    yield page.write("a")
    await turn.sleep(3600)
    yield page.write(f"b{turn.attempt}", last=True)


def resting_in_a_thread(turn: Turn) -> Iterator[Any]:
    """The same in a thread."""
    page = turn.stream()
    yield page.write("a")
    turn.sleep(3600).now()
    yield page.write(f"b{turn.attempt}", last=True)


async def impatient(turn: Turn) -> Any:
    """Give a question up and ask another one: each gets its own answer."""

    async def history() -> Any:
        return await turn.history

    asked = [asyncio.ensure_future(history()) for _ in range(3)]
    await asyncio.sleep(0)
    for question in asked:
        question.cancel()
    await turn.step("one", lambda: 1)
    return f"{len(await turn.history)} {await turn.step('two', lambda: 2)}"


#: What a turn has left at work in the process.
left_over: list[asyncio.Task[Any]] = []


async def forgetful(turn: Turn) -> str:
    """Leave something at work, which asks about this turn when the process has another one."""
    asked = asyncio.Event()

    async def history() -> Any:
        await asked.wait()
        return [message.parts[0].text for message in await turn.history]

    left_over.append(asyncio.ensure_future(history()))
    left_over[-1].asked = asked  # type: ignore[attr-defined]
    return "left"


async def successor(turn: Turn) -> str:
    """Say what came of that."""
    (left,) = left_over
    left.asked.set()  # type: ignore[attr-defined]
    await asyncio.wait([left])
    return "nothing" if left.cancelled() else f"{left.result()}"


def asking(turn: Turn) -> Iterator[Any]:
    """Ask when nobody answers any more."""
    yield turn.working(f"{os.getpid()}")
    begin(turn)
    wait_for(place(turn) / "go")
    try:
        turn.history.now()
    finally:
        (place(turn) / "ended").touch()


async def side_by_side(turn: Turn) -> str:
    """Take two steps that use a model, beside a slow one that began before them and waits for the test."""
    slow_began = asyncio.Event()

    async def ask() -> None:
        await turn.usage(model="m")

    async def work() -> None:
        (place(turn) / f"slow, {len(list(place(turn).glob('slow*'))) + 1}").touch()
        slow_began.set()
        await asyncio.to_thread(wait_for, place(turn) / "go")

    async def take_slow() -> None:
        await turn.step("slow", work)
        slow_began.set()  # its result is known already in the second attempt

    async def ask_twice() -> None:
        await slow_began.wait()
        await turn.step("one", ask)
        await turn.step("two", ask)

    await asyncio.gather(ask_twice(), take_slow())
    return "done"


# --- faults ---------------------------------------------------------------------------------


def lax(turn: Turn) -> Iterator[Any]:
    """Say and keep what is no JSON elsewhere."""
    turn.memory["deep"] = []
    turn.memory["deep"].append("\ud83d")
    yield "\ud83d"
    yield data(float("nan"))


def telling(turn: Turn) -> Any:
    raise AgentError("Tell the client")


def raising(turn: Turn) -> Iterator[Any]:
    yield "x"
    raise LookupError("the password is 12345")


class UnprintableError(Exception):
    """One that fails when it is to say what it is."""

    def __str__(self) -> str:
        raise LookupError("no words")


def unprintable(turn: Turn) -> Any:
    raise UnprintableError


def leaving(turn: Turn) -> Any:
    sys.exit(3)


def unspeakable(turn: Turn) -> Any:
    return data(lambda: None)


def unforgettable(turn: Turn) -> Any:
    turn.memory["x"] = lambda: None


def odd(turn: Turn) -> Any:
    return 42


async def spending(turn: Turn) -> Any:
    """Use a model in a step and beside it, die once, and end as the second word says."""
    await turn.step("call", lambda: turn.usage(model="m", input_tokens=10))
    turn.usage(model="m", input_tokens=1)
    if turn.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if turn.text.endswith("badly"):
        raise AgentError("no")


# --- deaths ---------------------------------------------------------------------------------


def killed(turn: Turn) -> Iterator[Any]:
    """Die as of a lack of memory."""
    yield turn.working("about to die")
    (place(turn) / f"attempt {turn.attempt}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(turn: Turn) -> Iterator[Any]:
    """Die, but do better the next time."""
    yield turn.working(f"attempt {turn.attempt}")
    if turn.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def exiting(turn: Turn) -> Any:
    os._exit(3)


def forking(turn: Turn) -> Iterator[Any]:
    """Fork, and die before what was forked."""
    pid = os.fork()
    if not pid:
        signal.pause()
    yield turn.working(f"{pid}")
    os.kill(os.getpid(), signal.SIGKILL)


# --- being stopped --------------------------------------------------------------------------


def looking(turn: Turn) -> Iterator[Any]:
    """Work until told, as the guide wants it."""
    yield turn.working(f"{os.getpid()}")
    begin(turn)
    until_told(turn)
    (place(turn) / "ended").touch()
    yield "nobody hears this"


async def waiting(turn: Turn) -> AsyncIterator[Any]:
    """Wait for what does not come."""
    yield turn.working(f"{os.getpid()}")
    with at_work(turn):
        await asyncio.Event().wait()


def sleeping(turn: Turn) -> Iterator[Any]:
    """Sleep durably."""
    yield turn.working(f"{os.getpid()}")
    with at_work(turn):
        turn.sleep(3600).now()


def busy(turn: Turn) -> Iterator[Any]:
    """Keep a core busy, and look at nothing."""
    yield turn.working(f"{os.getpid()}")
    with at_work(turn):
        look_at_nothing()


async def async_busy(turn: Turn) -> AsyncIterator[Any]:
    """The same on the process's event loop."""
    yield turn.working(f"{os.getpid()}")
    with at_work(turn):
        look_at_nothing()


async def deaf(turn: Turn) -> AsyncIterator[Any]:
    """Take no for no answer."""
    yield turn.working(f"{os.getpid()}")
    begin(turn)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            (place(turn) / "shrugged").touch()


def locked(turn: Turn) -> Iterator[Any]:
    """Sit in C code and hold the interpreter."""
    yield turn.working(f"{os.getpid()}")
    begin(turn)
    ctypes.PyDLL(None).sleep(3600)


def with_a_child(turn: Turn) -> Iterator[Any]:
    """Run a program that takes no notice of anything, and wait for it."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    yield turn.working(f"{program.pid}")
    begin(turn)
    program.wait()


def holding(turn: Turn) -> Iterator[Any]:
    """Work until the test has seen enough."""
    yield turn.working(f"{os.getpid()}")
    begin(turn)
    wait_for(place(turn) / "go")
    yield f"{os.getpid()}"


def holding_the_interpreter(turn: Turn) -> Iterator[Any]:
    """Let nothing else happen in this process for two seconds."""
    yield turn.working(f"{os.getpid()}")
    ctypes.PyDLL(None).sleep(2)
    yield f"attempt {turn.attempt}"
