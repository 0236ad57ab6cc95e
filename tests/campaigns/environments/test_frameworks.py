"""Workers of frameworks that exclude each other, each in its own environment, at one host. `make frameworks` makes them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests import ROOT, backend
from tests.campaigns.environments.conftest import MADE
from tests.journeys.hosts import Host
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import message
from tests.model_server import ModelServer, serving_model
from tests.support.processes import Child

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(900)]
#: The agents by the folders of their frameworks, and the state in which each leaves a first message.
AGENTS = {
    "adk": ("adk-chat", "completed"),
    "agent_framework": ("agent-framework-chat", "completed"),
    "crewai": ("crew", "completed"),
    "executor_v03": ("poem-03", "input-required"),
    "strands": ("strands-chat", "completed"),
}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The model of all agents."""
    with serving_model() as server:
        yield server


def start(name: str, model: ModelServer) -> Child:
    """Start the worker of a framework."""
    given = {**backend.children(), "A2A_ENVIRONMENT": name, "A2A_APPS": f"frameworks.{name}"}
    given.pop("DJANGO_SETTINGS_MODULE", None)
    return Child(
        subprocess.Popen(  # noqa: S603 - our own command line
            [ROOT / "var/frameworks" / name / "bin/python", "-m", "a2a_host.worker"],
            cwd=ROOT,
            env={**given, "CHAT_URL": model.url, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )


async def test_they_answer_clients_of_1_0_and_0_3_side_by_side(
    site: Host, model: ModelServer
) -> None:
    with ExitStack() as stack:
        workers = {name: start(name, model) for name in MADE}
        for worker in workers.values():
            stack.callback(worker.stop)
        for worker in workers.values():
            worker.wait_for(" ready.", 240)
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
            for name in MADE:
                slug, state = AGENTS[name]
                assert await ask_both(http, f"{site.here}/agents/{slug}") == [state, state]


async def ask_both(http: httpx.AsyncClient, url: str) -> list[str]:
    """The states of two tasks: of a client of A2A 1.0, and of one of 0.3."""

    async def is_served() -> bool:
        return (await http.get(f"{url}/.well-known/agent-card.json")).status_code == 200

    await eventually(is_served, "the agent is served")
    new = (await http.post(f"{url}/message:send", json=message("SAY hello"))).json()
    words = {"kind": "message", "messageId": "1", "role": "user"}
    params = {"message": {**words, "parts": [{"kind": "text", "text": "SAY hello"}]}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    old = (await http.post(url, json=call)).json()
    word = new["task"]["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    return [word, old["result"]["status"]["state"]]
