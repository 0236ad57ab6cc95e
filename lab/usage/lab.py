"""A host with three workers and a model server: tasks of four agents, while workers are killed with SIGKILL."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from lab.faultlab.checker import Violation
from lab.faultlab.lab import Episode, Lab, Plan
from lab.usage.judge import Answer, Judgement, judge
from tests.journeys.wire import TERMINAL, message
from tests.model_server import Exchange, ModelServer, serving_model

__all__ = ["UsageLab", "plan", "run"]

AGENTS = ("plain", "in-process", "pydantic-ai", "langgraph")
#: Moments of kills, beside any moment: around the writing of a report, and of the step in which it was made.
POINTS = ("worker.reported", "worker.keep_begins", "worker.step_kept", "worker.step_begins")
#: Tasks under way at the same time.
AT_ONCE = 12
NUMBER = re.compile(r"SAY t(\d+) ")
ROWS = "select task_id, input_tokens, output_tokens from a2a_tasks_usage"


class Witness(ModelServer):
    """A model server that knows when a request came, and when its answer was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.begins: dict[int, float] = {}
        self.ends: dict[int, float] = {}

    async def _answer(
        self, shape: Any, request: Any, entries: Any, exchange: Exchange, send: Any
    ) -> None:
        self.begins[exchange.number] = time.time()
        await super()._answer(shape, request, entries, exchange, send)
        self.ends[exchange.number] = time.time()

    def answers(self) -> list[Answer]:
        """All requests of tasks; those that were finished with the time."""
        return [
            Answer(
                int(found.group(1)),
                (one.input_tokens, one.output_tokens),
                self.begins[one.number],
                self.ends.get(one.number, time.time()) if one.state == "finished" else 0.0,
            )
            for one in list(self.exchanges)
            if (found := NUMBER.match(one.prompt))
        ]


def plan() -> Plan:
    """A lab for it."""
    environ = {
        "A2A_LEASE_SECONDS": "3",
        "A2A_BEAT_SECONDS": "0.6",
        "A2A_POLL_SECONDS": "0.3",
        "A2A_MAX_ATTEMPTS": "30",
        "A2A_FETCH_ALLOW_PRIVATE": "1",
        "A2A_AGENT_PROCESSES": "1",
    }
    return Plan(webs=1, workers=3, environ=environ)


class UsageLab(Lab):
    """The host, the model server and the clients."""

    tasks, wanted = 0, 0
    judgement: Judgement

    def _start_processes(self, ports: Sequence[int]) -> None:
        self.model = Witness()
        self._stack.enter_context(serving_model(model=self.model))
        super()._start_processes(ports)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the host's processes."""
        own = {
            "A2A_APPS": "lab.usage.host_app",
            "A2A_DEFAULT_AGENT": "plain",
            "PYTHONDONTWRITEBYTECODE": "",  # processes start again and again
            "CHAT_URL": self.model.url if hasattr(self, "model") else "http://127.0.0.1",
            "USAGE_TRACE": str(self.directory / "usage.jsonl"),
        }
        return {**super().environ, **own}

    async def drive(self, rng: random.Random) -> dict[str, Any]:
        """Send all tasks, and kill workers meanwhile."""
        self.names: dict[str, int] = {}
        self.kills: list[float] = []
        self.ended: list[str] = []
        self._done = self.at_points = 0
        (url,) = self.urls.values()
        headers = {"A2A-Version": "1.0"}
        room = asyncio.Semaphore(AT_ONCE)
        async with httpx.AsyncClient(timeout=30, trust_env=False, headers=headers) as client:
            killing = asyncio.ensure_future(self._kill(rng))
            await asyncio.gather(*(self._carry(client, url, n, room) for n in range(self.tasks)))
            await asyncio.wait_for(killing, 60)
        return {}

    async def _carry(
        self, client: httpx.AsyncClient, url: str, number: int, room: asyncio.Semaphore
    ) -> None:
        """Send a task, and wait for its end."""
        base = f"{url}/agents/{AGENTS[number % len(AGENTS)]}"
        params = message(make_prompt(number), configuration={"returnImmediately": True})
        key = {"Idempotency-Key": uuid.uuid4().hex}
        async with room:
            sent = await _ask(client, "POST", f"{base}/message:send", json=params, headers=key)
            task = sent["task"]["id"]
            self.names[task] = number
            self.ended.append(await _wait_for_end(client, f"{base}/tasks/{task}"))
        self._done += 1

    async def _kill(self, rng: random.Random) -> None:
        """Kill a busy worker again and again, evenly over the tasks."""
        for number in range(self.wanted):
            while self._done < number * self.tasks / (self.wanted + 1):
                await asyncio.sleep(0.05)
            if rng.random() < 0.5:
                fault = self.arm(rng.choice(POINTS), "kill", nth=rng.randint(1, 5))
                struck = await fault.struck(5)
                self.disarm()
                if struck:
                    self.kills.append(time.time())
                    self.at_points += 1
                    continue
            await asyncio.sleep(rng.random() * 0.3)
            while (victim := self.busy_worker(rng)) is None:
                await asyncio.sleep(0.05)
            self.hurt(victim, "kill")
            self.kills.append(time.time())

    def _verdict(self) -> tuple[list[Violation], list[float], int]:
        begun = list(map(read_line, (self.directory / "usage.jsonl").read_text().splitlines()))
        rows = self.postgres.execute(ROWS, self.database)
        kept = [(self.names[task], (int(in_), int(out))) for task, in_, out in rows]
        self.judgement = judge(self.model.answers(), begun, kept, self.kills)
        faults = [Violation("usage", fault, []) for fault in self.judgement.faults]
        if len(self.kills) != self.wanted:
            faults.append(Violation("usage", f"{len(self.kills)} kills were made", []))
        if wrong := [state for state in self.ended if state != "TASK_STATE_COMPLETED"]:
            faults.append(Violation("usage", f"{len(wrong)} tasks did not complete", wrong))
        return faults, [], len(self.ended)


async def _wait_for_end(client: httpx.AsyncClient, url: str) -> str:
    """Return the last state of the task at this address."""
    while True:
        state = str((await _ask(client, "GET", url))["status"]["state"])
        if state in TERMINAL:
            return state
        await asyncio.sleep(0.1)


async def _ask(client: httpx.AsyncClient, verb: str, url: str, **about: Any) -> dict[str, Any]:
    """Ask until there is an answer: connections may end between two requests."""
    while True:
        with contextlib.suppress(httpx.TransportError):
            answer = await client.request(verb, url, **about)
            if answer.status_code == httpx.codes.OK:
                found: dict[str, Any] = answer.json()
                return found
        await asyncio.sleep(0.1)


def make_prompt(number: int) -> str:
    """The prompt of a task: three answers, the first two with a call of a tool."""
    words = " ".join(f"w{n}" for n in range(number % 7))
    lines = [
        f'SAY t{number} {words} one + CALL look {{"text": "a"}} + SLOW 0.02',
        f'SAY {words} two + CALL look {{"text": "b"}} + SLOW 0.02',
        f"SAY {words} three + SLOW 0.02",
    ]
    return "\n".join(lines)


def read_line(line: str) -> tuple[int, tuple[int, int]]:
    """A report that was begun: the number of the task, and its tokens."""
    said: Mapping[str, Any] = json.loads(line)
    found = NUMBER.match(said["text"])
    assert found
    return int(found.group(1)), (said["input_tokens"], said["output_tokens"])


def run(lab: UsageLab, tasks: int, kills: int, seed: int) -> Episode:
    """So many tasks with so many kills, and what came of it."""
    lab.tasks, lab.wanted = tasks, kills
    return lab.episode("usage", seed, lab.drive, settling=60 + 2 * tasks)
