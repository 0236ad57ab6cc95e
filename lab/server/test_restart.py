"""`make restart` on a real stack: new code comes, nobody is refused, no task fails, streams go on."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from a2a_tasks.models import Run
from lab.server.test_from_nothing import LONG, echo, make_stack
from tests import ROOT, backend
from tests.journeys.wire import plain
from tests.support.ports import free_port
from tests.support.printing_process import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AGENT = """
from a2a_tasks.agents import Agent, Skill

class Versioned(Agent):
    slug, name, description = "versioned", "Versioned", "Says which one it is."
    skills = [Skill("say", "Say", "Says it", tags=["test"])]

    async def run(self, turn):
        yield {version!r}
"""


def test_without_a_stack_it_says_so(tmp_path: Path) -> None:
    done = restart({**os.environ, "VAR_DIR": str(tmp_path)})
    assert done.returncode != 0
    assert f"No stack runs on {tmp_path}. `make stack` starts one." in done.stderr


@pytest.mark.backend("stack")
@pytest.mark.timeout(400)
@pytest.mark.django_db(transaction=True)
def test_a_restart_refuses_nobody_fails_no_task_and_ends_no_stream_for_good(tmp_path: Path) -> None:
    asyncio.run(_restarts(tmp_path))
    assert set(Run.objects.values_list("attempt", flat=True)) == {1}


async def _restarts(tmp_path: Path) -> None:
    app = tmp_path / "versioned"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "agents.py").write_text(AGENT.format(version="one"))
    env = {
        **backend.children(),
        "A2A_ANONYMOUS": "1",
        "A2A_APPS": "examples.demo,versioned",
        "A2A_DRAIN_SECONDS": "1",
        "A2A_GRPC_PORT": str(grpc_port := free_port()),
        "PYTHONPATH": str(tmp_path),
        "VAR_DIR": str(tmp_path / "var"),
    }
    with make_stack(env, "-c", "worker=2") as (stack, url):
        async with plain(url, "versioned") as client, plain(url, "demo") as other:
            assert text_of(await client.send("?")) == "one"
            async with other.stream("sleep 600") as stream:
                await stream.read(until=2)
                (app / "agents.py").write_text("raise RuntimeError('on purpose')")
                stopped = restart(env)
                assert stopped.returncode != 0
                assert "on purpose" in stopped.stderr
                assert text_of(await client.send("?")) == "one"
                (app / "agents.py").write_text(AGENT.format(version="two"))
                with asking(lambda: echo(f"{url}/")) as answers, calling(grpc_port) as called:
                    done = restart(env)
                    assert done.returncode == 0, done.stderr + stack.transcript()
                    await stream.read()  # its web process was replaced
                assert set(answers) == {"hello"}
                assert set(called) == {"OK"}
                assert "CANCELED" not in str(stream.seen[-1])
            async with other.resume(stream.task_id, after=stream.last) as rest:
                await other.cancel(stream.task_id)
                await rest.read()
            numbers = [event.number for event in [*stream.seen, *rest.seen]]
            assert numbers == list(range(1, len(numbers) + 1))
            assert "CANCELED" in str(rest.seen[-1])
            assert text_of(await client.send("?")) == "two"
        stack.signal(15)
        stack.exit_code(LONG)


def text_of(task: dict[str, object]) -> str:
    """What the agent said."""
    return str(task["artifacts"][0]["parts"][0]["text"])  # type: ignore[index]


def restart(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As a person restarts the stack."""
    return subprocess.run(
        ["make", "--silent", "restart"],  # noqa: S607
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=2 * LONG,  # every process starts twice, beside threads that ask all the time
        check=False,
    )


@contextmanager
def asking(ask: Callable[[], str]) -> Iterator[list[str]]:
    """Ask again and again, for as long as the block lasts; what was answered."""
    answers: list[str] = []
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(0.02):
            try:
                answers.append(ask())
            except (OSError, grpc.RpcError) as error:
                answers.append(repr(error))

    asker = threading.Thread(target=repeat)
    asker.start()
    try:
        yield answers
    finally:
        over.set()
        asker.join(LONG)


@contextmanager
def calling(port: int) -> Iterator[list[str]]:
    """Call over gRPC again and again, by turns on a new connection and on one that stays."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as kept:
        numbers = itertools.count()

        def call() -> str:
            own = [("grpc.use_local_subchannel_pool", 1)]
            with grpc.insecure_channel(f"127.0.0.1:{port}", own) as new:
                channel = new if next(numbers) % 2 else kept
                check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
                check(b"", timeout=PATIENCE)
            return "OK"

        with asking(call) as answers:
            yield answers
