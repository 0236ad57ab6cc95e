"""The conversation of a turn: kept from task to task with the state in which a turn ends, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, AgentError, Turn
from a2a_tasks.agents.emission import Reply
from a2a_tasks.caller import Caller
from a2a_tasks.execution import recorder as recording
from a2a_tasks.models import ConversationItem, ConversationMemory, Message, Run
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import conversations
from a2a_tasks.store.append import append, append_batched
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import Batch
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state, message_of, take_away
from tests.support.execution.waiting import until

pytestmark = [
    pytest.mark.quick_on("sqlite"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("local_runs"),
]


def said(task: values.Task) -> list[str]:
    """The texts of its artifacts."""
    found = [msgspec.json.decode(artifact)["parts"] for artifact in task.artifacts or ()]
    return ["".join(part["text"] for part in parts) for parts in found]


async def stored() -> dict[str, str]:
    """The values there are."""
    rows = ConversationMemory.objects.values_list("key", "value")
    return {key: bytes(value).decode() for key, value in await run_in_thread(list, rows)}


async def listed() -> list[str]:
    """The items there are."""
    rows = ConversationItem.objects.order_by("list__key", "number").values_list("value", flat=True)
    return await run_in_thread(list, rows)


async def keeps(turn: Turn) -> str:
    """Keep everything there is to keep, and read it back."""
    memory, conversation = turn.conversation.memory, turn.conversation
    seen = await memory.get("text"), await memory.get("bytes"), await memory.get("json", {})
    log = await conversation.items("log")
    await memory.set("text", turn.text)
    await memory.set("bytes", turn.text.encode() + b"\xff\x00")
    await memory.set("json", {"said": [turn.text]})
    await conversation.append("log", turn.text, {"n": len(log)})
    assert await memory.get("text") == turn.text
    assert await conversation.items("log", 3) == [*log, turn.text, {"n": len(log)}][-3:]
    return f"{seen} {log}"


def keeps_in_a_thread(turn: Turn) -> str:
    """The same, synchronously."""
    memory, conversation = turn.conversation.memory, turn.conversation
    seen = memory.get("text").now(), memory.get("bytes").now(), memory.get("json", {}).now()
    log = conversation.items("log").now()
    memory.set("text", turn.text).now()
    memory.set("bytes", turn.text.encode() + b"\xff\x00").now()
    memory.set("json", {"said": [turn.text]}).now()
    conversation.append("log", turn.text, {"n": len(log)}).now()
    assert memory.get("text").now() == turn.text
    assert conversation.items("log", 3).now() == [*log, turn.text, {"n": len(log)}][-3:]
    return f"{seen} {log}"


class TestFromTaskToTask:
    @pytest.mark.parametrize("run", [keeps, keeps_in_a_thread], ids=["loop", "thread"])
    async def test_what_one_task_keeps_the_next_one_reads(self, run: Callable[..., Any]) -> None:
        with playing(run) as agent:
            alice = Client(agent)
            first = await alice.send("one", context_id="talk")
            second = await alice.send("two", context_id="talk")
            other = await alice.send("three", context_id="another")
        assert said(first) == said(other) == ["(None, None, {}) []"]
        read = ("one", b"one\xff\x00", {"said": ["one"]})
        assert said(second) == [f"{read} {['one', {'n': 0}]}"]

    async def test_a_turn_that_does_not_use_it_asks_no_query_more(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def read(*_: Any) -> Any:
            raise AssertionError("read")

        for name in ("read_value", "read_version", "read_items", "count_keys", "read_history"):
            monkeypatch.setattr(conversations, name, read)
        with playing(lambda turn: str(turn.conversation.memory is not None)) as agent:
            assert said(await Client(agent).send()) == ["True"]

    async def test_items_are_taken_off_and_cleared(self) -> None:
        async def run(turn: Turn) -> str:
            conversation = turn.conversation
            match turn.text:
                case "grow":
                    await conversation.append("log", 1, 2, 3)
                case "pop":
                    await conversation.append("log", 4)
                    taken = [await conversation.pop("log") for _ in range(3)]
                    assert taken == [4, 3, 2]
                    await conversation.append("log", 5)
                case "clear":
                    await conversation.clear("log")
                    assert await conversation.pop("log") is None
            return str(await conversation.items("log"))

        with playing(run) as agent:
            alice = Client(agent)
            told = [
                said(await alice.send(text, context_id="talk"))
                for text in ("grow", "pop", "look", "clear", "look", "grow")
            ]
        assert told == [
            [text] for text in ("[1, 2, 3]", "[1, 5]", "[1, 5]", "[]", "[]", "[1, 2, 3]")
        ]

    async def test_a_value_is_deleted(self) -> None:
        async def run(turn: Turn) -> str:
            memory = turn.conversation.memory
            if turn.text == "set":
                await memory.set("a", 1)
                await memory.set("gone", 1)
                await memory.delete("gone")
                await memory.delete("never")
            else:
                await memory.delete("a")
            return str([await memory.get("a"), await memory.get("gone", "no")])

        with playing(run) as agent:
            assert said(await Client(agent).send("set", context_id="talk")) == ["[1, 'no']"]
            assert await stored() == {"a": "1"}
            assert said(await Client(agent).send("delete", context_id="talk")) == ["[None, 'no']"]
        assert await stored() == {}

    async def test_a_change_that_is_not_awaited_does_nothing_and_is_reported(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def run(turn: Turn) -> None:
            turn.conversation.memory.set("a", 1)
            turn.conversation.append("log", 1)

        with playing(run) as agent:
            await Client(agent).send()
        assert await stored() == {}
        for name in ("memory.set", "append"):
            assert f"without await turn.conversation.{name}(...) it does nothing" in caplog.text
        assert __file__ in caplog.text


class TestOthers:
    @pytest.mark.parametrize(
        "other",
        [Caller(principal="user:bob"), Caller(principal="user:alice", tenant="acme")],
        ids=["owner", "tenant"],
    )
    async def test_with_the_same_context_id_have_a_conversation_of_their_own(
        self, other: Caller
    ) -> None:
        async def run(turn: Turn) -> str:
            log = await turn.conversation.items("log")
            await turn.conversation.append("log", turn.text)
            history = [message.parts[0].text for message in await turn.conversation.history()]
            return f"{log} {history}"

        with playing(run) as agent:
            await Client(agent).send("alice's", context_id="talk")
            foreign = await Client(agent, other).send("another's", context_id="talk")
            again = await Client(agent).send("again", context_id="talk")
        assert said(foreign) == ['[] ["another\'s"]']
        assert said(again)[0].startswith('["alice\'s"] ["alice\'s", ')
        assert "another's" not in said(again)[0]

    async def test_of_a_tenant_that_shares_its_tasks_have_the_same_one(self) -> None:
        async def run(turn: Turn) -> str:
            await turn.conversation.append("log", turn.caller.principal)
            return str(await turn.conversation.items("log"))

        alice, bob = (Caller(principal=f"user:{n}", tenant="acme") for n in ("alice", "bob"))
        with playing(run, visibility="tenant") as agent:
            await Client(agent, alice).send(context_id="talk")
            shared = await Client(agent, bob).send(context_id="talk")
        assert said(shared) == ["['user:alice', 'user:bob']"]


async def ends_by(turn: Turn) -> AsyncIterator[Any]:
    """Keep something, and end as the text says."""
    await turn.conversation.memory.set("a", turn.text)
    await turn.conversation.append("log", turn.text)
    yield turn.working("at it")
    match turn.text:
        case "raise":
            raise LookupError("oh")
        case "tell":
            raise AgentError("oh")
        case "nothing":
            return
        case word:
            yield getattr(turn, word)("oh")


class TestTheEnd:
    @pytest.mark.parametrize(
        "word", ["nothing", "complete", "ask", "need_auth", "fail", "reject", "reply"]
    )
    async def test_a_turn_that_ends_by_its_own_word_keeps_all(self, word: str) -> None:
        with playing(ends_by) as agent:
            await Client(agent).send(word)
        assert (await stored(), await listed()) == ({"a": word}, [f'"{word}"'])

    @pytest.mark.parametrize("word", ["raise", "tell"])
    async def test_a_turn_that_raises_keeps_nothing(self, word: str) -> None:
        with playing(ends_by) as agent:
            assert (await Client(agent).send(word)).status.state.word == "failed"
        assert (await stored(), await listed()) == ({}, [])

    async def test_a_cancelled_turn_keeps_nothing(self) -> None:
        begun = asyncio.Event()

        async def run(turn: Turn) -> None:
            await turn.conversation.memory.set("a", 1)
            begun.set()
            await asyncio.Event().wait()

        with playing(run) as agent:
            alice = Client(agent)
            task = await alice.begin()
            await asyncio.wait_for(begun.wait(), 30)
            await alice.cancel(task.id)
        assert await stored() == {}

    async def test_a_run_that_was_taken_away_keeps_nothing_and_its_next_attempt_begins_anew(
        self,
    ) -> None:
        attempts: list[Any] = []

        async def run(turn: Turn) -> str:
            attempts.append(await turn.conversation.items("log"))
            await turn.conversation.append("log", turn.attempt)
            if turn.attempt == 1:
                await run_in_thread(take_away)
            return "done"

        with playing(run) as agent:
            alice = Client(agent)
            task = await alice.begin()
            await until(lambda: client_state(alice, task.id, "completed"))
        assert attempts == [[], []]
        assert await listed() == ["2"]

    async def test_changes_after_the_last_word_are_kept(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            try:
                yield turn.complete("done")
            finally:
                await turn.conversation.memory.set("a", 1)

        with playing(run) as agent:
            assert (await Client(agent).send()).status.state.word == "completed"
        assert await stored() == {"a": "1"}


class TestAQuestion:
    """It is written with the memory of it."""

    async def test_waits_for_the_end_of_a_turn_that_uses_its_conversation(self) -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> AsyncIterator[Any]:
            if turn.text == "use":
                await turn.conversation.memory.get("a")
            yield turn.working("at it")
            yield turn.ask("Well?")
            asked.set()
            await go.wait()
            if turn.text == "use":
                await turn.conversation.memory.set("a", 1)

        with playing(run) as agent:
            alice = Client(agent)
            task = await alice.begin("use")
            await asyncio.wait_for(asked.wait(), 30)
            await until(lambda: message_of(alice, task.id))
            assert await alice.states(task.id) == "working"
            go.set()
            await until(lambda: client_state(alice, task.id, "input-required"))
            assert await stored() == {"a": "1"}
            go.clear()
            other = await alice.begin("do not use")
            await until(lambda: client_state(alice, other.id, "input-required"))
            go.set()

    async def test_that_was_taken_back_waits_no_longer(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            await turn.conversation.memory.set("a", 1)
            yield turn.ask("Well?")
            yield "never mind"

        with playing(run) as agent:
            alice = Client(agent)
            task = await alice.begin()
            await until(lambda: client_state(alice, task.id, "completed"))
            assert said(await alice.get(task.id)) == ["never mind"]
        assert await stored() == {"a": "1"}

    async def test_that_may_be_written_already_lets_no_change_come_after_it(self) -> None:
        faults: list[str] = []

        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.ask("Well?")
            try:
                await turn.conversation.append("log", 1)
            except RuntimeError as fault:
                faults.append(str(fault))
            assert await turn.conversation.items("log") == []

        with playing(run) as agent:
            assert (await Client(agent).send()).status.state.word == "input-required"
        assert "conversation.append comes too late" in faults[0]
        assert await listed() == []


class TestTwoAtOnce:
    """The version decides, and the second one fails where everybody sees it."""

    @pytest.fixture
    def met(self) -> Iterator[tuple[Agent, list[asyncio.Event]]]:
        """An agent whose turns read, wait for the test, and write."""
        gates: dict[str, asyncio.Event] = {"one": asyncio.Event(), "two": asyncio.Event()}
        begun = [asyncio.Event(), asyncio.Event()]

        async def run(turn: Turn) -> AsyncIterator[Any]:
            log = await turn.conversation.items("log")
            begun[len(turn.text) - 3].set() if turn.text == "one" else begun[1].set()
            await gates[turn.text].wait()
            await turn.conversation.append("log", f"{turn.text} after {log}")
            yield turn.text
            yield turn.complete("Done.")

        with playing(run) as agent:
            agent.gates, agent.begun = gates, begun  # type: ignore[attr-defined]
            yield agent, begun

    async def test_the_second_run_fails_with_a_text_and_keeps_nothing(
        self, met: tuple[Agent, list[asyncio.Event]]
    ) -> None:
        agent, begun = met
        alice = Client(agent)
        one = await alice.begin("one", context_id="talk")
        two = await alice.begin("two", context_id="talk")
        await asyncio.gather(*(event.wait() for event in begun))
        agent.gates["two"].set()  # type: ignore[attr-defined]
        await until(lambda: client_state(alice, two.id, "completed"))
        agent.gates["one"].set()  # type: ignore[attr-defined]
        await until(lambda: client_state(alice, one.id, "failed"))
        text = (
            "Another task of this conversation has changed 'log' meanwhile. Send the message again."
        )
        assert msgspec.json.decode(await message_of(alice, one.id))["parts"] == [{"text": text}]
        assert said(await alice.get(one.id)) == ["one"], "what it said before stays"
        assert await listed() == ['"two after []"']
        run = await run_in_thread(Run.objects.get, task__public_id=one.id)
        assert (run.status, run.error) == ("failed", f"ConversationChanged: {text}\n")
        again = await alice.send("one", context_id="talk")
        assert again.status.state.word == "completed"
        assert len(await listed()) == 2

    async def test_a_turn_that_sees_the_change_itself_fails_at_once(self) -> None:
        read, go = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> str:
            memory = turn.conversation.memory
            if turn.text == "change":
                await memory.set("a", 2)
                await turn.conversation.append("log", 2)
                return "changed"
            seen = [await memory.get("a"), await turn.conversation.items("log")]
            read.set()
            await go.wait()
            reading = memory.get("a") if turn.text == "value" else turn.conversation.items("log")
            return f"{seen} {await reading}"

        with playing(run) as agent:
            alice = Client(agent)
            await alice.send("change", context_id="talk")
            for text in ("value", "list"):
                read.clear()
                go.clear()
                task = await alice.begin(text, context_id="talk")
                await asyncio.wait_for(read.wait(), 30)
                await alice.send("change", context_id="talk")
                go.set()
                await until(partial(client_state, alice, task.id, "failed"))
                assert "meanwhile" in await message_of(alice, task.id)

    async def test_a_direct_message_becomes_a_task_that_failed(self) -> None:
        read, go = asyncio.Event(), asyncio.Event()

        async def run(turn: Turn) -> Reply:
            await turn.conversation.append("log", turn.text)
            if turn.text == "slow":
                read.set()
                await go.wait()
            return turn.reply(turn.text)

        with playing(run, replies_directly=True) as agent:
            alice = Client(agent)
            sending = asyncio.ensure_future(alice.send("slow", context_id="talk"))
            await asyncio.wait_for(read.wait(), 30)
            quick = alice.request("quick", context_id="talk")
            answer = await TABLE["SendMessage"](quick, alice.call())
            assert not isinstance(answer, values.Task)
            go.set()
            task = await sending
        assert (task.status.state.word, task.artifacts or []) == ("failed", [])
        kept = await run_in_thread(list, Message.objects.values_list("role", "number"))
        assert len(kept) == 3, "no message of the one that failed"


class TestAnUnknownOutcome:
    @pytest.mark.parametrize("is_written", [True, False])
    async def test_the_batch_that_comes_again_is_applied_once(
        self, monkeypatch: pytest.MonkeyPatch, is_written: bool
    ) -> None:
        tries: list[Batch] = []
        real = append_batched

        async def unknown(batch: Batch) -> int:
            if batch.conversation:
                tries.append(batch)
                if len(tries) == 1:
                    if is_written:
                        await run_in_thread(append, batch)
                    raise Overloaded.away(undone=False)
            return await real(batch)

        monkeypatch.setattr(recording, "append_batched", unknown)
        with playing(ends_by) as agent:
            task = await Client(agent).send("complete")
            assert task.status.state.word == "completed"
            await until(lambda: len(tries) == 2)
        assert (await stored(), await listed()) == ({"a": "complete"}, ['"complete"'])

    async def test_a_process_that_dies_leaves_neither_answer_nor_memory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its last batch never arrives; another process takes the run over."""
        died = asyncio.Event()
        real = append_batched

        async def die(batch: Batch) -> int:
            if batch.conversation and not died.is_set():
                died.set()
                await asyncio.Event().wait()
            return await real(batch)

        monkeypatch.setattr(recording, "append_batched", die)
        with playing(ends_by) as agent:
            alice = Client(agent)
            task = await alice.begin("ask")
            await asyncio.wait_for(died.wait(), 30)
            assert (await stored(), await alice.states(task.id)) == ({}, "working")
            await run_in_thread(take_away)
            await until(lambda: client_state(alice, task.id, "input-required"))
        assert (await stored(), await listed()) == ({"a": "ask"}, ['"ask"'])


class TestLimits:
    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("value", r"at most 10 bytes are in the value of 'a', not 11"),
            ("items", r"at most 3 items are in the list 'log', not 4"),
        ],
    )
    async def test_are_named_at_the_line_of_the_author(
        self, settings: Any, text: str, fault: str
    ) -> None:
        settings.A2A_MEMORY_MAX_BYTES, settings.A2A_MEMORY_MAX_ITEMS = 10, 3
        faults: list[BaseException] = []

        async def run(turn: Turn) -> None:
            await turn.conversation.memory.set("a", "x" * 10)
            await turn.conversation.append("log", 1, 2, 3)
            try:
                if text == "value":
                    await turn.conversation.memory.set("a", "x" * 11)
                else:
                    await turn.conversation.append("log", 4)
            except ValueError as raised:
                faults.append(raised)

        with playing(run) as agent:
            await Client(agent).send()
        with pytest.raises(ValueError, match=fault):
            raise faults[0]
        assert await stored() == {"a": "x" * 10}
        assert len(await listed()) == 3


class TestHistory:
    async def test_has_the_messages_of_all_tasks_and_the_answers_to_them(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            match turn.text:
                case "ask":
                    yield turn.working("thinking")
                    yield turn.ask("Which?")
                case "this one":
                    yield "took "
                    yield "it"
                case "tell":
                    told = [
                        f"{m.role.value[5:].lower()}: {m.parts[0].text}"
                        for m in await turn.conversation.history()
                    ]
                    short = await turn.conversation.history(limit=2)
                    yield turn.complete("\n".join([*told, *(str(m.parts[0].text) for m in short)]))
                case _:
                    yield turn.complete("Done.")

        with playing(run) as agent:
            alice = Client(agent)
            first = await alice.send("ask", context_id="talk")
            await alice.send("do", context_id="talk")
            await alice.send("this one", task_id=first.id)
            await alice.send("elsewhere", context_id="another")
            last = await alice.send("tell", context_id="talk")
        text = msgspec.json.decode(bytes(last.status.message or b""))["parts"][0]["text"]
        assert text.splitlines() == [
            "user: ask",
            "agent: Which?",
            "user: do",
            "agent: Done.",
            "user: this one",
            "agent: took ",
            "user: tell",
            "took ",
            "tell",
        ]

    async def test_ends_with_the_message_of_the_turn(self) -> None:
        """Messages that came later are others' turns."""
        read, go = asyncio.Event(), asyncio.Event()
        seen: list[str] = []

        async def run(turn: Turn) -> str:
            if turn.text == "slow":
                read.set()
                await go.wait()
                seen.extend(str(m.parts[0].text) for m in await turn.conversation.history())
            return "said"

        with playing(run) as agent:
            alice = Client(agent)
            await alice.send("first", context_id="talk")
            slow = await alice.begin("slow", context_id="talk")
            await asyncio.wait_for(read.wait(), 30)
            await alice.send("later", context_id="talk")
            go.set()
            await until(lambda: client_state(alice, slow.id, "completed"))
        assert seen == ["first", "said", "slow"]

    async def test_has_a_limit_of_bytes_and_leaves_out_what_is_larger(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[list[str]] = []

        async def run(turn: Turn) -> AsyncIterator[str]:
            if turn.text == "look":
                seen.append([str(m.parts[0].text)[:5] for m in await turn.conversation.history()])
            elif turn.text == "large":
                yield "x" * 5000
            else:
                yield "small"

        monkeypatch.setattr(conversations, "HISTORY_BYTES", 4000)
        with playing(run) as agent:
            alice = Client(agent)
            for text in ("one", "large", "two", "look"):
                await alice.send(text, context_id="talk")
            monkeypatch.setattr(conversations, "HISTORY_BYTES", 600)
            await alice.send("look", context_id="talk")
        assert seen[0] == ["one", "small", "large", "two", "small", "look"]
        whole = [*seen[0], "look"]
        assert 1 < len(seen[1]) < len(whole)
        assert seen[1] == whole[-len(seen[1]) :]
