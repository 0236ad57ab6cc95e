"""The log of a run: what its agent tells `logging` is kept with it, wherever it works, and never at its cost."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_tasks.agents import Agent, Turn, registry
from a2a_tasks.execution import run_log
from a2a_tasks.models import Run, RunLine
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store import run_lines
from a2a_tasks.store.db import run_in_thread
from tests.integration.execution.process_agents.agents import Script
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until
from tests.support.thorough import thorough

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
logger = logging.getLogger("tests.agent")


@pytest.fixture(autouse=True)
def local(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let runs be this process's own, and lines be written soon."""
    settings.A2A_RUNS = "local"
    monkeypatch.setattr(run_log, "EVERY", 0.02)
    before = logger.level
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(before)


def rows() -> list[RunLine]:
    return list(RunLine.objects.order_by("run_id", "number"))


def texts() -> list[str]:
    return [row.text for row in rows()]


async def lines(count: int) -> list[str]:
    """The texts, once there are so many."""

    async def written() -> bool:
        return await run_in_thread(RunLine.objects.count) >= count

    await until(written)
    return await run_in_thread(texts)


async def told(run: Any, count: int, **about: Any) -> list[str]:
    """What is kept of an agent that says something."""
    with playing(run, **about) as agent:
        async with hosting():
            await Client(agent).send()
            return await lines(count)


class TestWhereItIsSaid:
    async def test_in_a_coroutine(self) -> None:
        async def run(turn: Turn) -> str:
            logger.info("of %s", turn.text)
            return "x"

        assert await told(run, 1) == ["of hello"]
        (row,) = await run_in_thread(rows)
        assert (row.number, row.attempt, row.level, row.logger) == (1, 1, 20, "tests.agent")
        assert row.run_id == (await run_in_thread(Run.objects.get)).pk

    async def test_in_a_task_and_a_thread_of_the_agents_own(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[str]:
            await asyncio.create_task(asyncio.to_thread(logger.info, "there"))
            yield "x"

        assert await told(run, 1) == ["there"]

    async def test_in_a_thread(self) -> None:
        def run(turn: Turn) -> str:
            logger.info("sync")
            return "x"

        assert await told(run, 1) == ["sync"]

    async def test_between_the_words_of_a_generator(self) -> None:
        def run(turn: Turn) -> Iterator[str]:
            logger.info("one")
            yield "x"
            logger.info("two")
            yield "y"

        assert await told(run, 2) == ["one", "two"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            thorough("talkative", [f"line {number}" for number in range(10)]),
            ("talkative_loop", ["here", "there"]),
        ],
    )
    @pytest.mark.backend("sqlite")  # what happens in processes is the same on both databases
    async def test_in_a_process(
        self, agent_processes: None, text: str, expected: list[str]
    ) -> None:
        registry.register(Script)
        try:
            async with hosting():
                await Client(hosted(Script)).send(text)
                assert await lines(len(expected)) == expected
        finally:
            registry._found.pop(Script.slug)

    async def test_of_two_at_once_each_has_its_own(self) -> None:
        both = asyncio.Barrier(2)

        async def run(turn: Turn) -> str:
            await both.wait()
            logger.info("%s", turn.task_id)
            return "x"

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                await asyncio.gather(client.send(), client.send())
                await lines(2)

        def of_its_run(row: RunLine) -> bool:
            return row.text == row.run.task.public_id

        assert await run_in_thread(lambda: [of_its_run(row) for row in rows()]) == [True, True]

    async def test_what_is_said_outside_of_a_run_is_nobodys(self) -> None:
        async def run(turn: Turn) -> str:
            logger.info("inside")
            return "x"

        with playing(run) as agent:
            async with hosting():
                await Client(agent).send()
                logger.info("outside")
                logging.getLogger("a2a_tasks.execution.runner").error("the host's own")
                assert await lines(1) == ["inside"]
        assert await run_in_thread(texts) == ["inside"]


def hosted(cls: type[Agent]) -> Agent:
    found = registry.find_hosted(cls.slug)
    assert found is not None
    return found


class TestWhatIsKept:
    async def test_from_the_level_that_is_set(self, settings: Any) -> None:
        settings.A2A_RUN_LOG_LEVEL = "WARNING"

        async def run(turn: Turn) -> str:
            logger.info("quiet")
            logger.warning("loud")
            return "x"

        assert await told(run, 1) == ["loud"]

    async def test_nothing_if_it_is_off(self, settings: Any) -> None:
        settings.A2A_RUN_LOG_LEVEL = "OFF"

        async def run(turn: Turn) -> str:
            logger.error("loud")
            return "x"

        await told(run, 0)
        assert await run_in_thread(texts) == []

    async def test_so_many_lines_and_the_number_of_the_rest(self, settings: Any) -> None:
        settings.A2A_RUN_LOG_LINES = 3

        async def run(turn: Turn) -> str:
            for number in range(10):
                logger.info("%d", number)
            return "x"

        assert (await told(run, 4))[:3] == ["0", "1", "2"]
        assert (await run_in_thread(texts))[3].startswith("… 7 more lines")

    async def test_a_long_one_with_its_beginning_and_its_end(self) -> None:
        async def run(turn: Turn) -> str:
            logger.info("begin %s end", "x" * 100_000)
            return "x"

        (text,) = await told(run, 1)
        assert len(text) == 2000
        assert (text[:6], text[-4:]) == ("begin ", " end")

    async def test_a_trace(self) -> None:
        async def run(turn: Turn) -> str:
            try:
                raise KeyError("canary")
            except KeyError:
                logger.exception("it went wrong")
            return "x"

        (text,) = await told(run, 1)
        assert text.startswith("it went wrong\nTraceback")
        assert text.endswith("KeyError: 'canary'")

    async def test_without_credentials_and_what_no_database_takes(self) -> None:
        async def run(turn: Turn) -> str:
            logger.info("Authorization: Bearer canary0123456789 \x00 \ud800")
            return "x"

        (text,) = await told(run, 1)
        assert text == "Authorization: Bearer [redacted] \\x00 \\ud800"

    async def test_not_what_cannot_be_formatted(self) -> None:
        async def run(turn: Turn) -> str:
            logging.raiseExceptions = False
            try:
                logger.info("%d", "x")
            finally:
                logging.raiseExceptions = True
            logger.info("good")
            return "x"

        assert await told(run, 1) == ["good"]


class TestItsCost:
    async def test_a_run_ends_well_though_no_line_can_be_written(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        failed = threading.Event()

        def fail(_: Any) -> None:
            failed.set()
            raise RuntimeError("canary")

        monkeypatch.setattr(run_lines, "write", fail)
        # One that has told of no other test's failures.
        fresh = ThrottledLogger(
            logging.getLogger(run_log.__name__), "log lines of runs were not stored"
        )
        monkeypatch.setattr(run_log, "_lost", fresh)

        async def run(turn: Turn) -> str:
            logger.info("said")
            return "x"

        with playing(run) as agent:
            async with hosting():
                task = await Client(agent).send()
                assert await asyncio.to_thread(failed.wait, 10)
        assert task.status.state.word == "completed"
        assert "canary" in caplog.text

    async def test_what_is_being_written_when_the_host_ends_is_kept(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def run(turn: Turn) -> str:
            logger.info("said")
            return "done"

        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(*work: Any) -> None:
            begun.set()
            await go_on.wait()
            await run_in_thread(*work)

        close = run_log.RunLogWriter.close

        async def closed(notebook: run_log.RunLogWriter) -> None:
            asyncio.get_running_loop().call_later(0.1, go_on.set)
            await close(notebook)

        monkeypatch.setattr(run_log, "run_in_thread", slow)
        monkeypatch.setattr(run_log.RunLogWriter, "close", closed)
        with playing(run) as agent:
            async with hosting():
                await Client(agent).send()
                await begun.wait()
        assert await run_in_thread(texts) == ["said"]

    async def test_the_lines_of_many_runs_are_written_together(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_log, "EVERY", 3600.0)
        writes: list[int] = []
        write = run_lines.write

        def counted(said: Any) -> None:
            writes.append(len(said))
            write(said)

        monkeypatch.setattr(run_lines, "write", counted)

        async def run(turn: Turn) -> str:
            logger.info("said")
            return "x"

        with playing(run) as agent:
            async with hosting():
                await asyncio.gather(*(Client(agent).send() for _ in range(5)))
        assert writes == [5]  # by the process that ends, which writes what there is
