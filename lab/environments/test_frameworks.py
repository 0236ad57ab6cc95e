"""Workers of frameworks that exclude each other, each in its own environment, at one host. `make lab-frameworks` makes them."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from lab.environments.conftest import MADE
from tests import ROOT, backend
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
    given = {**backend.children(), "A2A_ENVIRONMENT": name, "A2A_APPS": f"lab.frameworks.{name}"}
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


async def test_they_answer_clients_of_three_versions_side_by_side(
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
                assert await ask_all(http, f"{site.here}/agents/{slug}") == [state] * 3


async def ask_all(http: httpx.AsyncClient, url: str) -> list[str]:
    """The states of three tasks: of clients of A2A 1.0, 0.3 and 0.2."""

    async def is_served() -> bool:
        return (await http.get(f"{url}/.well-known/agent-card.json")).status_code == 200

    await eventually(is_served, f"{url} is served")
    new = (await http.post(f"{url}/message:send", json=message("SAY hello"))).json()
    word = new["task"]["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    return [word, *[await ask_old(http, f"{url}/a2a/{version}") for version in ("0.3", "0.2")]]


async def ask_old(http: httpx.AsyncClient, url: str) -> str:
    """The state of the task of a client that calls `message/send` and waits."""
    words = {"kind": "message", "messageId": uuid.uuid4().hex, "role": "user"}
    params = {
        "message": {**words, "parts": [{"kind": "text", "text": "SAY hello"}]},
        "configuration": {"blocking": True, "acceptedOutputModes": ["text/plain"]},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    answer = (await http.post(url, json=call)).json()
    return str(answer["result"]["status"]["state"])
