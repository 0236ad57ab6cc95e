"""The process of an agent of a framework is killed while the model speaks and while a tool works: nothing used is paid twice.

The agent is one of pydantic-ai; `tests/campaigns/frameworks` has the others, and more moments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.backend import SQLITE, backend
from tests.journeys.hosts import APPS, QUICK, web, worker
from tests.journeys.waiting import eventually
from tests.journeys.wire import folded, plain
from tests.model_server import ModelServer, serving_model
from tests.support.processes import Child

pytestmark = [pytest.mark.quick_on("sqlite"), pytest.mark.usefixtures("emptied")]
COMPLETED, WAITS = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"
#: Three answers with tools, and a last one.
SCRIPT = """\
SAY one + CALL note {"text": "a"} + CALL note {"text": "b"}
SAY two WAIT and more + CALL note {"text": "c"}
SAY three + CALL hold {"text": "d"} + CALL note {"text": "e"}
SAY four: $RESULT"""
#: A tool that a person must approve of.
ASKS = 'SAY before + CALL pay {"amount": 7}\nSAY $RESULT'


class ChatHost:
    """A host with an agent: one process carries it out, and is killed and replaced."""

    def __init__(self, running: ExitStack, model: ModelServer, ledger: Path) -> None:
        self._running, self._count = running, 1
        self._environ = {
            **QUICK,
            "A2A_APPS": f"{APPS['A2A_APPS']},tests.journeys.chat_app",
            "CHAT_URL": model.url,
            "CHAT_LEDGER": str(ledger),
        }
        self._web = running.enter_context(web(self._environ))
        self._worker = None if backend() == SQLITE else self._begin_worker()

    def _begin_worker(self) -> Child:
        self._count += 1
        return self._running.enter_context(worker(self._count, self._environ, queues="chat"))

    @property
    def url(self) -> str:
        """Where the host answers."""
        return self._web.url

    def kill(self) -> None:
        """Kill the process that runs the agent (SIGKILL), and start another."""
        if self._worker is None:
            self._web.process.kill()
            self._web = self._running.enter_context(web(self._environ))
        else:
            self._worker.kill()
            self._worker = self._begin_worker()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The file that tools write to."""
    path = tmp_path / "ledger"
    path.touch()
    return path


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model server of the test's own."""
    with serving_model() as server:
        yield server


def lines(path: Path) -> list[str]:
    """What the tools wrote."""
    return path.read_text().split()


def texts(task: dict[str, Any]) -> list[str]:
    """The artifacts of a task, each as its text."""
    return ["".join(p.get("text", "") for p in a["parts"]) for a in task.get("artifacts", ())]


async def test_no_call_whose_result_was_used_is_made_again_and_a_late_approval_counts(
    model: ModelServer, ledger: Path
) -> None:
    with ExitStack() as running:
        host = ChatHost(running, model, ledger)
        async with plain(host.url, "chat") as client:
            task, asking = await client.start(SCRIPT), await client.start(ASKS)
            await client.until(asking, WAITS)

            async def speaks() -> bool:
                return texts(await client.get(task))[-1:] == ["two"]

            await eventually(speaks, "the model is in the middle of its second answer")
        host.kill()
        model.release()

        async def holds() -> bool:
            return {"d", "e"} <= set(lines(ledger))

        await eventually(holds, "a tool is at work")
        host.kill()
        async with plain(host.url, "chat") as client:
            await client.answer(asking, "yes")
            paid = await client.until(asking, COMPLETED)
            ended = await client.until(task, COMPLETED)
            events = await client.log(task)
    said = ["one", "two and more", "three"]
    assert texts(ended)[:-1] == said
    assert texts(ended)[-1] in ("four: held d", "four: noted e")
    calls: dict[bool, list[int]] = {True: [], False: []}
    for one in model.exchanges:
        calls[one.prompt == ASKS].append(one.line)
    # at each kill one call was under way, which is made again: an answer, then a tool
    assert Counter(calls[False]) == {0: 1, 1: 2, 2: 1, 3: 1}
    notes = Counter(lines(ledger))
    assert notes.pop("e") in (1, 2)  # its end may not have been written at the kill
    assert notes == {"a": 1, "b": 1, "c": 1, "d": 2, "paid-7": 1}
    assert texts(folded({**ended, "artifacts": []}, events)) == texts(ended)
    assert texts(paid) == ["before", "paid 7"]
    assert calls[True] == [0, 1]
