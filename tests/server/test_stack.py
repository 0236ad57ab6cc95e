"""`manage.py stack`: the processes it runs, and how its supervisor keeps and ends them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management.base import CommandError

from a2a_tasks.agents import registry
from a2a_tasks.management.commands import stack
from a2a_tasks.management.commands.serve import Address
from a2a_tasks.management.commands.stack import Program, Supervisor, stack_environ

if TYPE_CHECKING:
    from collections.abc import Callable

REDIS = "redis://127.0.0.1:6379/0"
#: Seconds until a test gives up on its supervisor.
PATIENCE = 30

ENDS_WELL = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause(); signal.pause()"
DIES = "print('up', flush=True); raise SystemExit(3)"


class TestTheEnvironment:
    def test_names_everything_that_is_missing_and_shows_how_to_set_it(self) -> None:
        with pytest.raises(CommandError) as refusal:
            stack_environ({"PATH": "/bin"})
        for name in ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"):
            assert f"export {name}=" in str(refusal.value)

    def test_takes_redis_for_the_broker_unless_another_is_named(self) -> None:
        urls = {"DATABASE_URL": "postgres://x/y", "REDIS_URL": REDIS}
        assert stack_environ(urls)["CELERY_BROKER_URL"] == REDIS
        named = stack_environ({**urls, "CELERY_BROKER_URL": "amqp://rabbit"})
        assert named["CELERY_BROKER_URL"] == "amqp://rabbit"


class TestThePrograms:
    def test_several_webs_serve_on_consecutive_ports(self) -> None:
        programs = stack.web(Address("127.0.0.1", 8000), 3, "uvicorn")
        assert [p.name for p in programs] == ["web.1", "web.2", "web.3"]
        assert [p.command[-1] for p in programs] == ["8000", "8001", "8002"]
        assert all("uvicorn" in p.command for p in programs)

    def test_workers_run_in_threads_and_have_names_of_their_own(self) -> None:
        first, second = stack.workers(2)
        line = " ".join(first.command)
        assert "-m celery -A " in line
        assert " worker -P threads -c 4 --without-gossip --without-mingle -Q agents " in line
        assert first.command[-1] != second.command[-1]

    def test_beat_keeps_its_schedule_in_the_data_folder(self, settings: object) -> None:
        settings.VAR_DIR = Path("/srv/a2a")  # type: ignore[attr-defined]
        assert stack.beat().command[-1] == "/srv/a2a/celerybeat-schedule"


class TestTheSupervisor:
    def test_starts_a_dead_process_again_and_says_so(self) -> None:
        said = supervised({"web": DIES}, until=lambda said: sum(":up" in line for line in said) > 2)
        assert any("died with code 3; again in" in line for line in said)

    def test_ends_all_together_and_shows_whose_line_is_whose(self) -> None:
        said = supervised(
            {"web": ENDS_WELL, "worker": ENDS_WELL},
            until=lambda said: {"web:up", "worker:up"} <= set(said),
        )
        assert said[2:] == ["web:ended with code 0", "worker:ended with code 0"] or said[2:] == [
            "worker:ended with code 0",
            "web:ended with code 0",
        ]

    def test_kills_what_does_not_end_in_time(self) -> None:
        said = supervised({"web": STUBBORN}, until=lambda said: "web:up" in said, patience=0.2)
        assert said[1:] == [
            "stack:1 process(es) did not end in time and are killed",
            "web:ended with code -9",
        ]

    def test_asked_twice_it_kills_at_once(self) -> None:
        said = supervised({"web": STUBBORN}, until=lambda said: "web:up" in said, asked=2)
        assert said[-1] == "web:ended with code -9"

    def test_passes_on_a_line_of_any_length_and_bytes_that_are_no_text(self) -> None:
        code = (
            "import sys, signal; sys.stdout.buffer.write(b'x' * 3000000 + b'\\xff\\n'); print('up', flush=True);"
            "signal.signal(15, lambda *_: sys.exit(0)); signal.pause()"
        )
        said = supervised({"web": code}, until=lambda said: "web:up" in said)
        assert sum(line.count("x") for line in said) == 3_000_000


def supervised(
    programs: dict[str, str],
    *,
    until: Callable[[list[str]], bool],
    patience: float = PATIENCE,
    asked: int = 1,
) -> list[str]:
    """Run Python programs under a supervisor until the lines say so, end it, and return all lines (`name:text`)."""
    said: list[str] = []
    enough = asyncio.Event()

    def say(line: str) -> None:
        name, _, text = line.partition("|")
        if "started as process" in text:
            return
        said.append(f"{name.strip()}:{text.strip()}")
        if until(said):
            enough.set()

    async def run() -> None:
        supervisor = Supervisor({}, ".", patience, say, pauses=(0.01,))
        running = asyncio.create_task(
            supervisor.run([Program(n, (sys.executable, "-c", c)) for n, c in programs.items()])
        )
        await enough.wait()
        for _ in range(asked):
            supervisor.end()
        await running

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    return said


def test_workers_consume_the_queues_that_agents_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        queue = "slow"

    monkeypatch.setattr(registry, "agents", lambda: [Slow()])
    assert stack.queues() == ["agents", "slow"]
    assert "agents,slow" in stack.workers(1)[0].command
