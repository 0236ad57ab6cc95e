"""Cases: the tasks of one conversation, what the model says and calls in each, and the moments at which a worker is killed.

A case is made of a seed alone, so a seed is always the same case.
"""

from __future__ import annotations

import random

import msgspec

__all__ = [
    "BACKENDS",
    "FRAMEWORKS",
    "SQLITE",
    "STACK",
    "Call",
    "Case",
    "Kill",
    "Line",
    "Script",
    "make_case",
]

FRAMEWORKS = ("pydantic_ai", "langgraph", "openai_agents")
STACK, SQLITE = "stack", "sqlite"
BACKENDS = (STACK, SQLITE)
#: Tools that write to the ledger: one in a thread, one on the event loop.
TOOLS = ("note", "look")
#: The tool that the client is asked about.
APPROVED = "pay"
#: Failpoints that are passed when words are written, results of steps are kept, a turn ends, and one begins.
APPENDS = (
    "worker.append_begins",
    "worker.appending",
    "worker.appended",
    "worker.announced",
)
KEEPS = ("worker.keep_begins", "worker.step_inside", "worker.step_kept")
ENDS = ("worker.agent_returned", "worker.ending", "worker.ended")
BEGINS = ("worker.claimed", "worker.agent_started")
#: Those which only the store of PostgreSQL passes.
OF_POSTGRES = {"worker.appending", "worker.ending", "worker.step_inside"}
#: Moments at which the killed process waits; what is under way then is made again for sure.
HELD = ("asked", "word", "begun")


class Call(msgspec.Struct, frozen=True):
    """A call of a tool in an answer of the model; its number makes its name in the ledger."""

    tool: str


class Line(msgspec.Struct, frozen=True):
    """One answer of the model: so many words, each after a pause in seconds, and calls side by side."""

    words: int
    pause: float = 0.0
    calls: tuple[Call, ...] = ()


class Kill(msgspec.Struct, frozen=True):
    """A moment: `what` happens with a line of a task for the n-th time, or with its n-th call or word.

    asked: the request for the line has come. word: the n-th word was sent. answered: all was sent.
    begun, done: the n-th tool. point: the failpoint `name` is passed for the n-th time after the request has come;
    line -1: after the message was sent, or, with `turn` 1, the answer to the question.
    """

    what: str
    line: int
    n: int = 0
    name: str = ""
    turn: int = 0

    def __str__(self) -> str:
        return f"{self.name or self.what} {self.n} of line {self.line}"


class Script(msgspec.Struct, frozen=True):
    """A task: its lines, the answer to its question if it asks one, and its kills, in order."""

    lines: tuple[Line, ...]
    kills: tuple[Kill, ...] = ()
    #: `yes` or `no`; empty = it asks nothing.
    answer: str = ""

    @property
    def question(self) -> int:
        """The number of the line that asks; -1 = none does."""
        asks = [n for n, line in enumerate(self.lines) if Call(APPROVED) in line.calls]
        return asks[0] if asks else -1


class Case(msgspec.Struct, frozen=True):
    """A conversation with an agent of a framework. Its last task is undisturbed: it shows what the agent remembers."""

    framework: str
    backend: str
    seed: int
    tasks: tuple[Script, ...]

    def __str__(self) -> str:
        return f"{self.framework} {self.backend} {self.seed}"

    @property
    def kills(self) -> int:
        """How many there are."""
        return sum(len(task.kills) for task in self.tasks)

    def prompt(self, number: int) -> str:
        """The message of a task: what the model server is to do, line by line."""
        return "\n".join(self._command(number, n) for n in range(len(self.tasks[number].lines)))

    def _command(self, task: int, number: int) -> str:
        line = self.tasks[task].lines[number]
        commands = []
        if line.words:
            words = [f"w{n}" for n in range(1, line.words)]
            commands.append(" ".join(["SAY", f"t{task}l{number}e$NUMBER", *words]))
        for n, call in enumerate(line.calls):
            commands.append(f'CALL {call.tool} {{"text": "{name_call(task, number, n)}"}}')
        # it has a word at least, by which the task is known
        return " + ".join([*commands, f"SLOW {line.pause}"])

    def text(self, task: int, line: int, exchange: int) -> str:
        """The text of an answer that was given in that exchange."""
        words = [f"w{n}" for n in range(1, self.tasks[task].lines[line].words)]
        said = " ".join([f"t{task}l{line}e{exchange}", *words])
        return said if self.tasks[task].lines[line].words else ""


def name_call(task: int, line: int, number: int) -> str:
    """Return the name of a call in the ledger."""
    return f"t{task}l{line}c{number}"


def make_case(framework: str, seed: int, backend: str = STACK) -> Case:
    """Make the case of a seed."""
    rng = random.Random(f"{framework} {seed}")
    tasks = [_make_task(rng, backend) for _ in range(rng.choice((2, 2, 3)))]
    return Case(framework, backend, seed, (*tasks, Script((Line(2),))))


def _make_task(rng: random.Random, backend: str) -> Script:
    lines = [_make_line(rng) for _ in range(rng.choice((1, 2, 2, 3)))]
    answer = ""
    if rng.random() < 0.35:
        asking = rng.randrange(len(lines))
        beside = lines[asking].calls[: rng.randrange(2)]
        lines[asking] = Line(lines[asking].words, lines[asking].pause, (*beside, Call(APPROVED)))
        answer = rng.choice(("yes", "yes", "no"))
    script = Script((*lines, _make_line(rng, last=True)), (), answer)
    return msgspec.structs.replace(script, kills=_make_kills(rng, script, backend))


def _make_line(rng: random.Random, *, last: bool = False) -> Line:
    pause = rng.choice((0.0, 0.004, 0.03))
    if last:
        return Line(rng.randint(3, 20), pause)
    calls = [Call(rng.choice(TOOLS)) for _ in range(rng.choice((1, 1, 2, 3)))]
    return Line(rng.choice((0, 3, 8, 15)), pause, tuple(calls))


def _make_kills(rng: random.Random, script: Script, backend: str) -> tuple[Kill, ...]:
    """One kill or two: the second one later, or at the moment of the first again."""
    number = rng.randrange(len(script.lines))
    first = _make_kill(rng, script, number, backend)
    if rng.random() > 0.4:
        return (first,)
    if first.what in HELD and rng.random() < 0.5:
        return first, first
    if number + 1 == len(script.lines) or first.name == "worker.agent_started":
        return (first,)
    return first, _make_kill(rng, script, rng.randrange(number + 1, len(script.lines)), backend)


def _make_kill(rng: random.Random, script: Script, number: int, backend: str) -> Kill:
    line, question = script.lines[number], number == script.question
    calls = len(line.calls) - (question and script.answer == "no")
    # in the turn that asks, only the answer of the model is sure to be kept
    steps = 1 if question else 1 + len(line.calls)
    makers = [
        lambda: Kill("asked", number),
        lambda: Kill("answered", number),
        lambda: _make_point(rng, number, KEEPS, backend, steps),
        lambda: _make_point(rng, number, KEEPS, backend, steps),
    ]
    if line.words:
        makers += [lambda: Kill("word", number, rng.randint(1, line.words))] * 2
        makers.append(lambda: _make_point(rng, number, APPENDS, backend))
    if calls:
        makers += [
            lambda: Kill("begun", number, rng.randrange(calls)),
            lambda: Kill("done", number, rng.randrange(calls)),
        ]
    if question or number == len(script.lines) - 1:
        makers += [lambda: _make_point(rng, number, ENDS, backend)] * 3
    if number == 0 and not question:
        makers.append(lambda: Kill("point", -1, 1, rng.choice(BEGINS)))
    if question:
        makers += [lambda: Kill("point", -1, 1, rng.choice(BEGINS), turn=1)] * 2
    return rng.choice(makers)()


def _make_point(
    rng: random.Random, number: int, names: tuple[str, ...], backend: str, most: int = 1
) -> Kill:
    known = [name for name in names if backend == STACK or name not in OF_POSTGRES]
    return Kill("point", number, rng.randint(1, most), rng.choice(known))
