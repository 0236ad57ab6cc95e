"""The process of an agent of a framework is killed while the model speaks and a tool works: nothing used is paid twice.

The agent is one of pydantic-ai; `lab/framework_kills` has the others, and more moments.
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

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("emptied")]
COMPLETED, WAITS = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"
#: Two answers with tools, and a last one. The model stops in the second one.
SPEAKS = """\
SAY one + CALL note {"text": "a"}
SAY two WAIT and more + CALL note {"text": "b"}
SAY three"""
#: A tool that does not end before its process does, beside one that does.
WORKS = """\
SAY four + CALL hold {"text": "d"} + CALL note {"text": "e"}
SAY five: $RESULT"""
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
            speaking, working, asking = [
                await client.start(script) for script in (SPEAKS, WORKS, ASKS)
            ]
            await client.until(asking, WAITS)

            async def both() -> bool:
                said = texts(await client.get(speaking))
                return said[-1:] == ["two"] and {"d", "e"} <= set(lines(ledger))

            await eventually(both, "the model is in its second answer, and a tool is at work")
        host.kill()
        model.release()
        async with plain(host.url, "chat") as client:
            await client.answer(asking, "yes")
            spoken, worked, paid = [
                await client.until(task, COMPLETED) for task in (speaking, working, asking)
            ]
            events = await client.log(speaking)
    assert texts(spoken) == ["one", "two and more", "three"]
    assert texts(folded({**spoken, "artifacts": []}, events)) == texts(spoken)
    assert texts(worked) in (["four", "five: held d"], ["four", "five: noted e"])
    assert texts(paid) == ["before", "paid 7"]
    # at the kill one call of each was under way, which is made again: an answer, and a tool
    calls = Counter((one.prompt, one.line) for one in model.exchanges)
    assert calls == {
        (SPEAKS, 0): 1,
        (SPEAKS, 1): 2,
        (SPEAKS, 2): 1,
        **{(script, line): 1 for script in (WORKS, ASKS) for line in (0, 1)},
    }
    notes = Counter(lines(ledger))
    assert notes.pop("e") in (1, 2)  # its end may not have been written at the kill
    assert notes == {"a": 1, "b": 1, "d": 2, "paid-7": 1}
