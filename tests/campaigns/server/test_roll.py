"""The supervisor replaces its processes one by one: the old one goes when the new one can work, and not before."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_tasks.management.supervisor import Program, Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.backend("sqlite")  # no database at all: once is enough
#: Seconds until a test gives up on its supervisor.
PATIENCE = 30.0

READY = "import os; os.write(int(os.environ['READY_FD']), b'ready\\n')"
WAITS = "signal.pause()"
#: Says which generation it is of: how often the program was started before it, by a file.
GENERATION = (
    "import signal, sys; signal.signal(15, lambda *_: sys.exit(0));"
    "import os, pathlib; path = pathlib.Path({path!r}); n = int(path.read_text()) if path.exists() else 0;"
    "path.write_text(str(n + 1)); print('generation', n + 1, flush=True)"
)


class Stage:
    """A supervisor of small Python programs, and what it says."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.outcomes: list[str | None] = []
        self._changed = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        self.supervisor = Supervisor(
            {}, ".", PATIENCE, self._say, pauses=(0.01,), on_roll=self._outcome, **options
        )

    def program(self, name: str, *lines: str, **about: Any) -> Program:
        """A program that says its generation, then does what the lines say."""
        code = "\n".join([GENERATION.format(path=str(self.folder / name)), *lines])
        return Program(name, (sys.executable, "-c", code), **about)

    def _say(self, line: str) -> None:
        name, _, text = line.partition("|")
        self.said.append(f"{name.strip()}: {text.strip()}")
        self._loop.create_task(self._tell())

    def _outcome(self, outcome: str | None) -> None:
        self.outcomes.append(outcome)
        self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that is said."""
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(condition)

    async def heard(self, *lines: str) -> None:
        """Wait for lines."""
        await self.until(lambda: set(lines) <= set(self.said))

    async def rolled(self) -> str:
        """Roll, and wait for the end; why it stopped."""
        ended = len([outcome for outcome in self.outcomes if outcome is not None])
        self.supervisor.roll()
        await self.until(lambda: len([o for o in self.outcomes if o is not None]) > ended)
        return [outcome for outcome in self.outcomes if outcome is not None][-1]

    @asynccontextmanager
    async def playing(self, *programs: Program) -> AsyncIterator[None]:
        """Start the programs, wait for their first generation, and end them with the block."""
        running = asyncio.create_task(self.supervisor.run(programs))
        try:
            await self.heard(*(f"{program.name}: generation 1" for program in programs))
            yield
        finally:
            self.supervisor.end()
            await asyncio.wait_for(running, PATIENCE)

    def process(self, name: str) -> int:
        """The process that was started last under a name."""
        lines = [line for line in self.said if line.startswith(f"{name}: started as process")]
        return int(lines[-1].split()[-1])


async def test_each_process_is_replaced_after_the_one_before_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with stage.playing(
        stage.program("worker", READY, WAITS), stage.program("web", READY, WAITS)
    ):
        old = {name: stage.process(name) for name in ("worker", "web")}
        assert await stage.rolled() == ""
        told = [line for line in stage.said if "generation 2" in line or "relieved" in line]
        assert told == [
            "worker: generation 2",
            f"worker: process {old['worker']} was relieved and ended with code 0",
            "web: generation 2",
            f"web: process {old['web']} was relieved and ended with code 0",
        ]
    assert sum(line.endswith("ended with code 0") for line in stage.said) == 4


async def test_the_database_is_prepared_by_new_code_before_the_first_is_replaced(
    tmp_path: Path,
) -> None:
    prepare = Program("migrate", (sys.executable, "-c", "print('prepared')"))
    stage = Stage(tmp_path, prepare=prepare)
    async with stage.playing(stage.program("web", READY, WAITS)):
        assert await stage.rolled() == ""
        assert stage.said.index("migrate: prepared") < stage.said.index("web: generation 2")


async def test_a_preparation_that_fails_leaves_everybody_in_place(tmp_path: Path) -> None:
    prepare = Program("migrate", (sys.executable, "-c", "raise SystemExit(7)"))
    stage = Stage(tmp_path, prepare=prepare)
    async with stage.playing(stage.program("web", READY, WAITS)):
        assert await stage.rolled() == "migrate: it ended with code 7"
        assert "web: generation 2" not in stage.said


async def test_a_new_process_that_dies_stops_the_roll_and_the_old_one_stays(tmp_path: Path) -> None:
    broken = "if n: raise SystemExit(3)"
    stage = Stage(tmp_path)
    async with stage.playing(
        stage.program("worker", broken, READY, WAITS), stage.program("web", READY, WAITS)
    ):
        old = stage.process("worker")
        outcome = await stage.rolled()
        assert outcome.startswith("worker: its new process")
        assert outcome.endswith("ended with code 3")
        os.kill(old, 0)  # it lives
        assert "web: generation 2" not in stage.said


async def test_a_new_process_that_is_never_ready_stops_the_roll_and_is_ended(
    tmp_path: Path,
) -> None:
    # Within them the new one must at least have learnt how to end.
    stage = Stage(tmp_path, ready_seconds=3.0)
    async with stage.playing(stage.program("web", f"if not n: {READY}", WAITS)):
        old = stage.process("web")
        outcome = await stage.rolled()
        assert outcome.endswith("was not ready after 3 s")
        new = stage.process("web")
        assert f"web: process {new} was relieved and ended with code 0" in stage.said
        os.kill(old, 0)


async def test_what_must_be_alone_ends_before_it_is_started_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with stage.playing(stage.program("beat", READY, WAITS, alone=True)):
        old = stage.process("beat")
        assert await stage.rolled() == ""
        relieved = stage.said.index(f"beat: process {old} was relieved and ended with code 0")
        assert relieved < stage.said.index("beat: generation 2")


async def test_a_process_that_dies_while_it_is_replaced_leaves_its_place_to_the_new_one(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    waits_for_gate = f"import pathlib, time\nwhile n and not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.01)"
    stage = Stage(tmp_path)
    async with stage.playing(stage.program("web", waits_for_gate, READY, WAITS)):
        rolling = asyncio.create_task(stage.rolled())
        await stage.heard("web: generation 2")
        os.kill(stage.process("web"), 0)
        first = next(line for line in stage.said if "started as process" in line)
        os.kill(int(first.split()[-1]), signal.SIGKILL)
        gate.touch()
        assert await rolling == ""
    assert "web: generation 3" not in stage.said
    assert stage.said[-1] == "web: ended with code 0"


async def test_another_process_that_dies_during_the_roll_is_started_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with stage.playing(
        stage.program("worker", READY, WAITS), stage.program("web", READY, WAITS)
    ):
        os.kill(stage.process("web"), signal.SIGKILL)
        assert await stage.rolled() == ""
        await stage.heard("web: generation 3")


async def test_asked_again_during_a_roll_another_one_follows(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with stage.playing(stage.program("web", READY, WAITS)):
        stage.supervisor.roll()
        await stage.heard("web: generation 2")
        assert await stage.rolled() == ""
        await stage.until(lambda: stage.outcomes == [None, "", None, ""])
        assert "web: generation 3" in stage.said


async def test_an_end_during_a_roll_ends_old_and_new(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with stage.playing(stage.program("web", f"if not n: {READY}", WAITS)):
        rolling = asyncio.create_task(stage.rolled())
        await stage.heard("web: generation 2")
    assert "ended with code" in await rolling
    assert sum("ended with code 0" in line for line in stage.said) >= 2


async def test_a_program_that_is_gone_for_a_moment_stops_the_roll_and_nothing_else(
    tmp_path: Path,
) -> None:
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    stage = Stage(tmp_path)
    here = stage.program("web", READY, WAITS)
    program = Program("web", (str(python), *here.command[1:]))
    async with stage.playing(program):
        old = stage.process("web")
        python.unlink()
        assert "it cannot be started" in await stage.rolled()
        os.kill(old, signal.SIGKILL)
        await stage.until(lambda: any("cannot be started" in line for line in stage.said[-3:]))
        python.symlink_to(sys.executable)
        await stage.heard("web: generation 2")
        assert await stage.rolled() == ""
