"""`manage.py stack`: the processes it runs, and how its supervisor keeps and ends them."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management.base import CommandError

from a2a_tasks.management.commands import serve, stack
from a2a_tasks.management.commands.serve import Address
from a2a_tasks.management.commands.stack import stack_environ
from a2a_tasks.management.supervisor import Program, Supervisor
from a2a_tasks.process import address_of, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

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
        address = Address("127.0.0.1", two_free_ports())
        with closing_all(serve.listening(address, 2, one_port=False)) as sockets:
            assert [address_of(sock)[1] for sock in sockets] == [address.port, address.port + 1]

    @pytest.mark.filterwarnings("error::ResourceWarning")
    def test_none_is_left_open_when_one_of_them_is_taken(self) -> None:
        port = two_free_ports()
        with listen("127.0.0.1", port + 1):
            with pytest.raises(CommandError, match=f"Port {port + 1} .* is taken"):
                serve.listening(Address("127.0.0.1", port), 2, one_port=False)
            listen("127.0.0.1", port).close()

    def test_several_webs_share_one_port_if_asked(self) -> None:
        with closing_all(serve.listening(Address("127.0.0.1", 0), 3, one_port=True)) as sockets:
            assert len(sockets) == 1

    def test_a_port_in_use_is_named_together_with_the_way_out(self) -> None:
        with listen("127.0.0.1", 0) as taken:
            address = Address(*address_of(taken))
            with pytest.raises(CommandError, match=f"Port {address.port} .* is taken .* PORT="):
                serve.listening(address, 1, one_port=False)

    def test_webs_inherit_their_sockets(self) -> None:
        programs = serve.web([7, 8, 9], "uvicorn")
        assert [p.name for p in programs] == ["web.1", "web.2", "web.3"]
        assert [p.command[-2:] for p in programs] == [("--fd", "7"), ("--fd", "8"), ("--fd", "9")]
        assert [p.descriptors for p in programs] == [(7,), (8,), (9,)]
        assert all("uvicorn" in p.command for p in programs)

    def test_workers_run_in_threads_and_have_names_of_their_own(self) -> None:
        first, second = stack.workers(2)
        line = " ".join(first.command)
        assert "-m celery -A " in line
        assert " worker -P threads -c 4 --without-gossip --without-mingle -l INFO " in line
        names = [first.called(1)[-1], first.called(2)[-1], second.called(1)[-1]]
        assert names == ["worker1@%h", "worker1.2@%h", "worker2@%h"]

    def test_pushers_send_webhooks_and_nothing_else(self) -> None:
        first, second = stack.pushers(2)
        assert " -Q webhooks " in " ".join(first.command)
        assert second.called(1)[-1] == "pusher2@%h"

    def test_beat_keeps_its_schedule_in_the_data_folder(self, settings: object) -> None:
        settings.VAR_DIR = Path("/srv/a2a")  # type: ignore[attr-defined]
        assert stack.beat().command[-1] == "/srv/a2a/celerybeat-schedule"

    def test_there_are_never_two_beats(self) -> None:
        assert stack.beat().alone


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


def two_free_ports() -> int:
    """The lower of two neighbouring ports nobody listens on, below those the kernel hands to anybody who asks."""
    for port in random.sample(range(10_000, 30_000, 2), 100):
        with suppress(OSError), listen("127.0.0.1", port), listen("127.0.0.1", port + 1):
            return port
    raise AssertionError("no two neighbouring ports are free")


@contextmanager
def closing_all(sockets: list[socket.socket]) -> Iterator[list[socket.socket]]:
    """Close the sockets at the end of the block."""
    with ExitStack() as stack:
        yield [stack.enter_context(sock) for sock in sockets]


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
