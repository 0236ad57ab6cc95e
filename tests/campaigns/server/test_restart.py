"""`manage.py stack --restart` on a real stack: new code comes, nobody is refused, no task fails, streams go on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from a2a_tasks.management import running_stack
from a2a_tasks.models import Run
from tests import ROOT, backend
from tests.campaigns.server.process import Process
from tests.campaigns.server.test_from_nothing import LONG, echo, lines_with
from tests.journeys.wire import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django.fixtures import Settings

AGENT = """
from a2a_tasks.agents import Agent, Skill

class Versioned(Agent):
    slug, name, description = "versioned", "Versioned", "Says which one it is."
    skills = [Skill("say", "Say", "Says it", tags=["test"])]

    async def run(self, turn):
        yield {version!r}
"""

#: Code that shows its mistake to a worker only.
BROKEN = "import sys\nif 'worker' in sys.argv: raise RuntimeError('on purpose')\n"


def test_without_a_stack_it_says_so(settings: Settings, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path
    with pytest.raises(CommandError, match=r"No stack runs on .*make stack"):
        call_command("stack", restart=True)


def test_a_folder_has_one_stack(settings: Settings, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path
    with (
        running_stack.claimed(tmp_path),
        pytest.raises(CommandError, match=r"A stack runs already on .* another VAR_DIR"),
    ):
        call_command("stack")
    assert running_stack.supervisor_of(tmp_path) is None


@pytest.mark.backend("stack")
@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_a_restart_refuses_nobody_fails_no_task_and_ends_no_stream_for_good(
    tmp_path: Path, server: str
) -> None:
    asyncio.run(_restarts(tmp_path, server))
    assert set(Run.objects.values_list("attempt", flat=True)) == {1}


async def _restarts(tmp_path: Path, server: str) -> None:
    app = tmp_path / "versioned"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "agents.py").write_text(AGENT.format(version="one"))
    env = {
        **backend.children(),
        "A2A_ANONYMOUS": "1",
        "A2A_APPS": "examples.demo,versioned",
        "A2A_DRAIN_SECONDS": "1",
        "PYTHONPATH": str(tmp_path),
        "VAR_DIR": str(tmp_path / "var"),
    }
    with running(env, server) as (stack, url):
        async with plain(url, "versioned") as client, plain(url, "demo") as other:
            assert text_of(await client.send("?")) == "one"
            async with other.stream("sleep 600") as stream:
                await stream.read(until=2)
                (app / "agents.py").write_text(BROKEN)
                stopped = restart(env)
                assert stopped.returncode != 0
                assert "The restart stopped at worker.1" in stopped.stderr
                lines_with(stack, {"stack": "the restart stopped at worker.1"})
                assert text_of(await client.send("?")) == "one"
                (app / "agents.py").write_text(AGENT.format(version="two"))
                with asking(url) as answers:
                    done = restart(env)
                assert done.returncode == 0, done.stderr + stack.transcript()
                assert set(answers) == {"hello"}
                await stream.read()  # its web process was replaced
                assert "CANCELED" not in str(stream.seen[-1])
            async with other.resume(stream.task_id, after=stream.last) as rest:
                await other.cancel(stream.task_id)
                await rest.read()
            numbers = [event.number for event in [*stream.seen, *rest.seen]]
            assert numbers == list(range(1, len(numbers) + 1))
            assert "CANCELED" in str(rest.seen[-1])
            assert text_of(await client.send("?")) == "two"
        stack.signal(15)
        assert stack.exit_code(LONG) == 0, stack.transcript()


def text_of(task: dict[str, object]) -> str:
    """What the agent said."""
    return str(task["artifacts"][0]["parts"][0]["text"])  # type: ignore[index]


def restart(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As a person restarts the stack."""
    command = [sys.executable, "manage.py", "stack", "--restart"]
    return subprocess.run(  # noqa: S603 - ours
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LONG, check=False
    )


@contextmanager
def running(env: dict[str, str], server: str) -> Iterator[tuple[Process, str]]:
    """A stack whose two web processes share a port."""
    command = ["manage.py", "stack", "--port", "0", "--web", "2", "--one-port", "--server", server]
    with Process(sys.executable, *command, env=env) as stack:
        url = stack_url(stack)
        yield stack, url.rstrip("/")


def stack_url(stack: Process) -> str:
    """Where it answers, once all of it does."""
    url = lines_with(stack, {"web.1": "Serving on"})["web.1"].split()[-1]
    assert echo(url) == "hello"
    return url


@contextmanager
def asking(url: str) -> Iterator[list[str]]:
    """Ask again and again, each time on a new connection, for as long as the block lasts; what was answered."""
    answers: list[str] = []
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.02):
            try:
                answers.append(echo(f"{url}/"))
            except OSError as error:
                answers.append(repr(error))

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield answers
    finally:
        over.set()
        asker.join(LONG)
