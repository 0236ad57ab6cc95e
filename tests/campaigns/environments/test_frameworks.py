"""Agents of frameworks that exclude each other, each in its environment, on one host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from frameworks.framed_model import FramedModelServer

from tests import ROOT, backend
from tests.journeys.hosts import Host, together
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import message
from tests.model_server import serving_model
from tests.support.processes import Child

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(900)]
#: An agent of each environment that asks a model.
AGENTS = {
    "adk": "adk-chat",
    "agent_framework": "agent-framework-chat",
    "crewai": "crew",
    "strands": "strands-chat",
}
MADE = ROOT / "var" / "frameworks"
WORDS = "here I am"
#: A send in each dialect that an executor for a2a-sdk 0.3 never heard of, or is older than it.
DIALECTS = {
    "1.0": ("SendMessage", {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "you"}]}),
    "0.3": (
        "message/send",
        {"messageId": "2", "role": "user", "parts": [{"kind": "text", "text": "you"}]},
    ),
    "0.2": (
        "message/send",
        {"messageId": "3", "role": "user", "parts": [{"kind": "text", "text": "you"}]},
    ),
}


def need(*names: str) -> None:
    """Skip where an environment was not made."""
    if missing := [name for name in names if not (MADE / name / ".made").is_file()]:
        pytest.skip(f"`make frameworks` makes the environments {', '.join(missing)}")


@contextmanager
def environment(name: str, url: str = "") -> Iterator[Child]:
    """Run the worker of an environment, with a model server at this URL."""
    given = {
        **backend.children(),
        "A2A_ENVIRONMENT": name,
        "A2A_APPS": f"frameworks.{name}",
        "CHAT_URL": url,
        "DJANGO_SETTINGS_MODULE": "a2a_host.worker_settings",
    }
    command = [MADE / name / "bin" / "python", "-m", "a2a_host.worker", "-n", f"{name}@%h"]
    worker = Child(
        subprocess.Popen(  # noqa: S603 - our own command line
            command,
            cwd=ROOT,
            env=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )
    try:
        worker.wait_for(" ready.", 240)
        yield worker
    finally:
        worker.stop()


async def served(http: httpx.AsyncClient, url: str) -> None:
    """Wait until the agent at this URL is served."""

    async def look() -> bool:
        return (await http.get(f"{url}/.well-known/agent-card.json")).status_code == 200

    await eventually(look, f"{url} is served")


async def test_agents_of_four_frameworks_answer_at_once(site: Host) -> None:
    need(*AGENTS)
    with ExitStack() as running:
        model = running.enter_context(serving_model(model=FramedModelServer()))
        workers: list[AbstractContextManager[Child]] = [environment(n, model.url) for n in AGENTS]
        together(running, *workers)
        async with httpx.AsyncClient(timeout=4 * PATIENCE, trust_env=False) as http:
            for slug in AGENTS.values():
                url = f"{site.here}/agents/{slug}"
                await served(http, url)
                sent = await http.post(f"{url}/message:send", json=message(f"SAY {WORDS}"))
                task: dict[str, Any] = sent.json()["task"]
                assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
                said = "".join(
                    part.get("text", "") for one in task["artifacts"] for part in one["parts"]
                )
                assert WORDS in said


async def test_an_executor_for_the_sdk_0_3_answers_clients_of_three_versions(site: Host) -> None:
    need("executor_v03")
    with environment("executor_v03"):
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
            url = f"{site.here}/agents/hello-03"
            await served(http, url)
            for version, (method, sent) in DIALECTS.items():
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": sent}}
                answer = await http.post(
                    f"{url}/a2a/{version}", json=body, headers={"A2A-Version": version}
                )
                assert "Hello, world! You said: you" in answer.text, answer.text
