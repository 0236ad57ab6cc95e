"""`make dev`: the host of somebody who writes an agent."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from lab.server.authors import make_environ, send
from tests.support.execution.waiting import eventually
from tests.support.printing_process import Process

#: Seconds for a host to come up, twice.
LONG = 60.0
AGENT = """
from a2a_tasks.agents import Agent, Skill

class Saying(Agent):
    description = "Says something."
    name = "Saying"
    skills = [Skill("say", "Say", "Says something", tags=["text"])]

    async def run(self, turn):
        {line}
"""


def say(url: str) -> str:
    """Send a message; returns the task as JSON."""
    return json.dumps(send(f"{url}agents/saying", "x"))


@pytest.mark.backend("sqlite")
def test_it_starts_again_with_the_changed_agent_and_shows_the_trace_of_a_mistake(
    tmp_path: Path,
) -> None:
    app = tmp_path / "saying"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "agents.py").write_text(AGENT.format(line='yield "the first"'))
    env = make_environ(tmp_path, "saying", A2A_DEFAULT_AGENT="saying", WATCH=str(app))
    with Process("make", "--silent", "dev", env=env) as host:

        def urls() -> list[str]:
            return [line.split()[-1] for line in host.said if line.startswith("  start")]

        eventually(lambda: len(urls()) == 1, LONG)
        assert f"{urls()[0]}agents/saying/" in [line.strip() for line in host.said]
        assert "the first" in say(urls()[0])
        (app / "agents.py").write_text(AGENT.format(line="yield 1 / 0"))
        eventually(lambda: len(urls()) == 2, LONG)
        said = say(urls()[1])
        assert "TASK_STATE_FAILED" in said
        assert "yield 1 / 0" in said
        assert "ZeroDivisionError" in said
        host.signal(signal.SIGTERM)
        host.exit_code(LONG)
