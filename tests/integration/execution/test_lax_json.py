"""Values that Python's JSON makes, and other readers of JSON refuse: they are mended, and never fail a task.

`json.loads` gives half a surrogate pair, NaN and integers of any size, so models and tools do.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from a2a_project.operations import TABLE
from a2a_tasks.agents import Part, Turn, data, file, registry
from a2a_tasks.execution import run_log
from a2a_tasks.models import RunLine
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.testing import converse
from tests.integration.execution.process_agents.agents import Script
from tests.integration.execution.test_mistakes import line_of
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, rows, tools_told
from tests.support.execution.waiting import until
from tests.support.frameworks import parts_of, question_of, status_text, text_of, usage_of

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
HALF, OTHER = "\ud83d", "\ude00"
#: A value with all that is mended, and what becomes of it.
LAX: dict[str, Any] = {
    f"a{HALF}": [f"x{HALF}y", f"{HALF}{OTHER}", float("nan"), float("-inf"), 2**70, {"b": OTHER}],
    "fine": [1, 0.5, None, True, "ü", 2**64 - 1],
}
MENDED: dict[str, Any] = {
    "a\ufffd": ["x\ufffdy", "😀", None, None, str(2**70), {"b": "\ufffd"}],
    "fine": [1, 0.5, None, True, "ü", 2**64 - 1],
}


@pytest.fixture(autouse=True)
def local(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs be this process's own, and lines be written soon."""
    settings.A2A_RUNS = "local"
    monkeypatch.setattr(run_log, "EVERY", 0.02)


async def task_of(run: Callable[..., Any]) -> Any:
    """The task of an agent that plays this, once it has settled."""
    with playing(run) as agent:
        async with hosting():
            return await Client(agent).send()


async def lines_of(run: Callable[..., Any]) -> tuple[Any, list[str]]:
    """The task, and the log of its run."""
    task = await task_of(run)
    return task, await run_in_thread(
        lambda: list(RunLine.objects.order_by("number").values_list("text", flat=True))
    )


async def not_working(client: Client, task: str) -> bool:
    """Has it settled?"""
    return await client.states(task) not in {"submitted", "working"}


def bodies(task: Any) -> list[Any]:
    """The artifacts."""
    return [msgspec.json.decode(body) for body in task.artifacts]


class TestWhatAnAgentYields:
    async def test_text_is_kept_with_a_mark_and_one_line_tells_the_author(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def run(turn: Turn) -> AsyncIterator[str]:
            yield f"x{HALF}y"
            yield f" and {OTHER}"

        task, lines = await lines_of(run)
        assert (text_of(task), task.status.state.word) == (["x\ufffdy and \ufffd"], "completed")
        (line,) = lines
        assert line.startswith(f"{line_of(run, '{HALF}y')}: a value was changed")
        assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == [line]

    async def test_a_pair_in_two_pieces_is_joined(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            page = turn.stream("page")
            yield f"a{HALF}"
            yield page.write(f"{HALF}")
            yield f"{OTHER}b"
            yield page.write(f"{OTHER}")

        task, lines = await lines_of(run)
        assert (text_of(task), lines) == (["a😀b", "😀"], [])

    @pytest.mark.parametrize("end", [lambda turn: turn.complete("ok"), lambda turn: data(1)])
    async def test_a_half_whose_other_half_never_comes_is_a_mark(self, end: Any) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield f"a{HALF}"
            yield end(turn)

        assert text_of(await task_of(run)) == ["a\ufffd"]

    async def test_the_last_half_of_an_agent_is_a_mark(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield f"a{HALF}"

        assert text_of(await task_of(run)) == ["a\ufffd"]

    async def test_names_ids_metadata_data_and_files(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.artifact(data(LAX), name="n\x00m", metadata=LAX)
            yield turn.artifact("x", id=f"i\x00{HALF}", name=HALF, description=HALF)
            yield turn.artifact(file(b"x", f"{HALF}.txt", f"text/{HALF}"), id="file")
            yield turn.artifact(Part(text="t", metadata=LAX, media_type=HALF), id="part")
            yield turn.artifact(file(b"x" * 300_000, f"{HALF}.bin", "a/b"), id="large")

        first, second, kept, part, large = bodies(await task_of(run))
        assert (first["artifactId"], first["name"]) == ("n\ufffdm", "n\x00m")
        assert (first["parts"], first["metadata"]) == ([{"data": MENDED}], MENDED)
        assert (second["artifactId"], second["name"]) == ("i\ufffd\ufffd", "\ufffd")
        assert second["description"] == "\ufffd"
        assert kept["parts"][0]["filename"] == "\ufffd.txt"
        assert part["parts"][0]["metadata"] == MENDED
        assert large["parts"][0]["filename"] == "\ufffd.bin"

    @pytest.mark.parametrize("word", ["working", "complete", "fail", "reject", "ask", "need_auth"])
    async def test_each_status(self, word: str) -> None:
        async def run(turn: Turn) -> Any:
            return getattr(turn, word)(f"x{HALF}", data(LAX), metadata=LAX)

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()
                await until(lambda: not_working(client, task.id))
                task = await client.get(task.id)
        if word == "working":
            assert task.status.state.word == "completed"
        else:
            message = msgspec.json.decode(task.status.message or b"")
            assert (parts_of(message), message["metadata"]) == (f"x\ufffd {MENDED}", MENDED)

    async def test_a_direct_answer(self) -> None:
        async def run(turn: Turn) -> Any:
            return turn.reply(HALF, metadata=LAX)

        with playing(run, replies_directly=True) as agent:
            async with hosting():
                answer = await TABLE["SendMessage"](
                    Client(agent).request("x"), Client(agent).call()
                )
        assert isinstance(answer, Raw)
        body = msgspec.json.decode(answer)
        assert (parts_of(body), body["metadata"]) == ("\ufffd", MENDED)

    async def test_a_form(self) -> None:
        async def run(turn: Turn) -> Any:
            asked = {"type": "string", "title": f"T{HALF}"}
            return turn.ask("?", form={"type": "object", "properties": {f"p{HALF}": asked}})

        _, form = question_of(await task_of(run))
        assert form["form"]["properties"] == {"p\ufffd": {"type": "string", "title": "T\ufffd"}}

    async def test_calls_of_tools_and_usage(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.tool_call(f"c{HALF}\x00", f"n{HALF}", LAX)
            yield turn.tool_result(f"c{HALF}\x00", LAX)
            await turn.usage(model=f"m{HALF}", input_tokens=3)

        task = await task_of(run)
        call, result = await run_in_thread(tools_told, task.id)
        about = {"id": "c\ufffd\ufffd", "name": "n\ufffd", "arguments": MENDED}
        assert call["toolCall"] == about
        assert result["toolResult"]["content"] == MENDED
        assert (await usage_of(task))["m\ufffd"]["inputTokens"] == 3


class TestWhatAnAgentKeeps:
    async def test_steps_memory_and_conversations(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            if turn.memory:
                values = turn.conversation.memory
                yield data([turn.memory, await values.get("json"), await values.get("text")])
                yield data(await turn.conversation.items("log"))
                return
            turn.memory["first"] = LAX
            turn.memory["second"] = []
            turn.memory["second"].append(HALF)
            assert await turn.step("look", lambda: LAX) == MENDED
            await turn.conversation.memory.set("json", LAX)
            await turn.conversation.memory.set("text", HALF)
            await turn.conversation.append("log", LAX, HALF)
            yield turn.ask("?")

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send()
                done = await client.send("go on", task_id=asked.id)
        (body,) = bodies(done)
        memory = {"first": MENDED, "second": ["\ufffd"]}
        kept = [part["data"] for part in body["parts"]]
        assert kept == [[memory, MENDED, "\ufffd"], [MENDED, "\ufffd"]], status_text(done)

    async def test_is_told_with_the_line_of_the_author(self) -> None:
        async def run(turn: Turn) -> str:
            turn.memory["half"] = HALF
            await turn.step("look", lambda: HALF)
            return "x"

        _, (memory, step) = await lines_of(run)
        assert memory.startswith(f"{line_of(run, 'turn.memory')}: turn.memory was changed")
        assert step.startswith(f"{line_of(run, 'turn.step')}: the result of step 'look' was")

    async def test_a_test_of_the_author_sees_the_same(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            turn.memory["half"] = [HALF]
            yield data(LAX)

        with playing(run) as agent:
            (answer,) = await converse(agent, "hello")
        assert answer.artifacts["answer"][0].data == MENDED
        assert answer.memory == {"half": ["\ufffd"]}


@pytest.mark.django_db(transaction=True)
async def test_what_it_asks_another_agent_with_the_line_of_the_author() -> None:
    heard: list[Any] = []

    async def answer(turn: Turn) -> str:
        heard.append((turn.text, turn.message.metadata))
        return f"{HALF}!"

    with playing(answer) as other:

        async def run(turn: Turn) -> str:
            metadata = {"lax": LAX}
            return (await turn.call(other.slug, f"x{HALF}y", metadata=metadata)).text

        with playing(run, calls=(other.slug,)) as agent:
            async with hosting():
                task = await Client(agent).send()
        lines = await run_in_thread(lambda: list(RunLine.objects.values_list("text", flat=True)))
    assert text_of(task) == ["\ufffd!"], status_text(task)
    ((text, metadata),) = heard
    assert (text, metadata["lax"]) == ("x\ufffdy", MENDED)
    assert f"{line_of(run, 'turn.call')}: the content of a call of {other.slug} was" in str(lines)


async def test_an_agent_in_a_process_of_its_own(agent_processes: None) -> None:
    registry.register(Script)
    try:
        agent = registry.find_hosted(Script.slug)
        assert agent is not None
        async with hosting():
            task = await Client(agent).send("lax")
    finally:
        registry._found.pop(Script.slug)
    (body,) = bodies(task)
    assert [part.get("text", part.get("data")) for part in body["parts"]] == ["", "\ufffd", None]
    assert (await run_in_thread(rows, task.id)).memory == '{"deep":["\ufffd"]}'
