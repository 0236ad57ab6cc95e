"""Agents that call agents: each call has one child, its caller waits without a slot, and every refusal has its words."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from a2a_project.operations import TABLE
from a2a_tasks.access import grants
from a2a_tasks.agents import Agent, AgentError, CallAnswer, CallRefused, Turn, data, file
from a2a_tasks.caller import Caller
from a2a_tasks.models import Delegation, Event, Run, Step, Task
from a2a_tasks.operations import accept_message
from a2a_tasks.protocol.errors import InvalidParams, Overloaded, RateLimited
from a2a_tasks.protocol.values import Message, Part, TaskState, replace
from a2a_tasks.store import accept
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, message_of, status_is, take_away
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
DELEGATION = "urn:a2a-host:delegation"
OPERATION = "a2a_tasks.operations.agent_calls"


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.05


async def echo(turn: Turn) -> str:
    """Answer with what was asked."""
    return f"billing: {turn.text}"


@contextmanager
def billing(run: Callable[..., Any] = echo, **attributes: Any) -> Iterator[Agent]:
    """Host the agent that is called."""
    with playing(run, slug="billing", **attributes) as agent:
        yield agent


@contextmanager
def planning(run: Callable[..., Any], **attributes: Any) -> Iterator[Client]:
    """Host the agent that calls, and return its client."""
    with playing(run, **{"slug": "planner", "calls": "*", **attributes}) as agent:
        yield Client(agent)


def said(task: Any) -> str:
    """What the only artifact of a task says."""
    return str(json.loads(bytes(task.artifacts[0]))["parts"][0]["text"])


async def refusal(run: Callable[..., Any], **attributes: Any) -> str:
    """The words with which the host refuses the call of an agent."""
    words = list[str]()

    async def plan(turn: Turn) -> None:
        try:
            await run(turn)
        except AgentError as refused:
            words.append(str(refused))

    with planning(plan, **attributes) as client:
        async with hosting():
            await client.send()
    assert await run_in_thread(Task.objects.filter(agent="billing").count) == 0
    return words[0]


class TestTheAnswer:
    async def test_is_that_of_the_other_agent(self) -> None:
        async def plan(turn: Turn) -> str:
            answer = await turn.call("billing", f"Refund {turn.text}")
            return f"planner: {answer.text}"

        with billing(), planning(plan, calls=("billing",)) as client:
            async with hosting():
                task = await client.send("7")
        assert (task.status.state, said(task)) == (
            TaskState.COMPLETED,
            "planner: billing: Refund 7",
        )
        row = await run_in_thread(Delegation.objects.select_related("child").get)
        assert (row.depth, row.path, row.open) == (1, '["planner"]', False)
        assert row.child.owner == "user:alice"

    def plan_in_thread(self, turn: Turn) -> str:
        one, two = turn.gather(
            turn.call("billing", "1", name="one"), turn.call("billing", "2", name="two")
        ).now()
        return f"{turn.call('billing', '0').now().text}, {one.text}, {two.text}"

    async def test_comes_to_a_synchronous_agent_too(self) -> None:
        with billing(), planning(self.plan_in_thread) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "billing: 0, billing: 1, billing: 2"

    async def test_has_state_data_artifacts_and_ids(self) -> None:
        got = list[CallAnswer]()

        async def answer(turn: Turn) -> AsyncIterator[Any]:
            yield turn.artifact("Done.", data({"receipt": 7}), name="receipt")
            yield turn.complete("Paid.")

        async def plan(turn: Turn) -> None:
            got.append(await turn.call("billing", "Refund"))

        with billing(answer), planning(plan) as client:
            async with hosting():
                await client.send()
        (one,) = got
        child = await run_in_thread(Task.objects.select_related("context").get, agent="billing")
        assert (one.state, one.failed) == (TaskState.COMPLETED, False)
        assert (one.text, one.data) == ("Done.", {"receipt": 7})
        assert one.artifacts[0].name == "receipt"
        assert one.message is not None
        assert one.message.parts == (Part(text="Paid."),)
        assert (one.task_id, one.context_id) == (child.public_id, child.context.public_id)

    @pytest.mark.parametrize("end", ["fail", "reject", "raise"])
    async def test_is_a_value_also_if_the_task_failed(self, end: str) -> None:
        async def fail(turn: Turn) -> AsyncIterator[Any]:
            if end == "raise":
                raise AgentError("No such order.")
            yield turn.fail("No such order.") if end == "fail" else turn.reject("No such order.")

        async def plan(turn: Turn) -> str:
            answer = await turn.call("billing", "Refund")
            return f"{answer.failed} {answer.state.word} {answer.text}"

        with billing(fail), planning(plan) as client:
            async with hosting():
                task = await client.send()
        word = "rejected" if end == "reject" else "failed"
        assert said(task) == f"True {word} No such order."

    async def test_of_an_agent_that_answers_directly_is_a_task(self) -> None:
        async def reply(turn: Turn) -> Any:
            return turn.reply("Hello.")

        async def plan(turn: Turn) -> str:
            return (await turn.call("billing", "Hi")).text

        with billing(reply, replies_directly=True), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "Hello."

    async def test_can_be_continued_in_its_conversation(self) -> None:
        async def plan(turn: Turn) -> str:
            first = await turn.call("billing", "7")
            second = await turn.call("billing", "8", to=first, name="second")
            return str((first.task_id == second.task_id, first.context_id == second.context_id))

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "(False, True)"

    async def test_begins_a_new_conversation_unless_it_is_named(self) -> None:
        async def plan(turn: Turn) -> str:
            calls = [
                turn.call("billing", "x", name=f"call {number}", context=context)
                for number, context in enumerate(["", "", "orders", "orders", "bills"])
            ]
            contexts = [answer.context_id for answer in await turn.gather(*calls)]
            return str([contexts.index(one) for one in contexts])

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.send()
                again = await client.send(context_id=task.context_id)
        assert said(task) == said(again) == "[0, 1, 2, 2, 4]"
        named = Task.objects.filter(agent="billing").values("context").distinct()
        assert await run_in_thread(named.count) == 6

    async def test_tells_the_other_agent_who_calls(self) -> None:
        seen = list[tuple[Message, Caller]]()

        async def see(turn: Turn) -> None:
            seen.append((turn.message, turn.caller))

        async def plan(turn: Turn) -> None:
            await turn.call("billing", "x", metadata={"mine": 1})

        with billing(see), planning(plan) as client:
            async with hosting():
                task = await client.send()
        ((message, caller),) = seen
        about = {"parentAgent": "planner", "path": ["planner"], "depth": 1}
        ids = {"rootTask": task.id, "parentTask": task.id}
        assert message.metadata == {"mine": 1, DELEGATION: {**about, **ids}}
        assert caller.principal == "user:alice"

    async def test_is_that_of_an_agent_which_sees_nothing_of_the_callers_context(self) -> None:
        about, seen = ContextVar("about", default="nothing"), list[str]()

        async def see(turn: Turn) -> None:
            seen.append(about.get())

        async def plan(turn: Turn) -> None:
            about.set("the planner's")
            await turn.call("billing", "x")

        with billing(see), planning(plan) as client:
            async with hosting():
                await client.send()
        assert seen == ["nothing"]

    async def test_is_waited_for_by_a_task_that_names_those_it_has_called(
        self, settings: Any
    ) -> None:
        settings.A2A_PARK_SECONDS = 0.0
        go = asyncio.Event()

        async def wait(turn: Turn) -> None:
            await go.wait()

        async def plan(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working("Let me see.")
            await turn.gather(*(turn.call("billing", "x", name=name) for name in "ab"))

        with billing(wait), planning(plan) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: run_in_thread(Run.objects.filter(awaits_calls=True).exists))
                message = json.loads(await message_of(client, task.id))
                go.set()
                await until(lambda: status_is("completed", task=task.id))
        children = Task.objects.filter(agent="billing").order_by("pk")
        ids = await run_in_thread(list, children.values_list("public_id", flat=True))
        named = [{"agent": "billing", "taskId": name} for name in ids]
        assert message["metadata"] == {"urn:a2a-host:calls": named}
        assert message["parts"] == [{"text": "Waits for billing."}]
        events = Event.objects.filter(task__public_id=task.id).values_list("body", flat=True)
        bodies = await run_in_thread(list, events)
        assert sum("a2a-host:calls" in body for body in bodies) == 1

    async def test_leaves_a_direct_reply_direct(self, settings: Any) -> None:
        settings.A2A_PARK_SECONDS = 0.0

        async def plan(turn: Turn) -> Any:
            return turn.reply((await turn.call("billing", turn.text)).text)

        with billing(), planning(plan, replies_directly=True) as client:
            async with hosting():
                wanted = client.request("x", wants_task=False)
                answer = await TABLE["SendMessage"](wanted, client.call())
        assert json.loads(bytes(answer))["parts"] == [{"text": "billing: x"}]

    async def test_is_late_when_its_time_is_over_and_its_task_is_cancelled(self) -> None:
        async def work(turn: Turn) -> None:
            await asyncio.Event().wait()

        async def plan(turn: Turn) -> str:
            one = await turn.call("billing", "x", seconds=0.2)
            two = await turn.call("billing", "x", seconds=0.2, at_end="leave", name="two")
            return f"{one.state.word} {two.state.word}"

        with billing(work), planning(plan) as client:
            async with hosting():
                task = await client.send()
                assert said(task) == "canceled working"
                left = await run_in_thread(Task.objects.filter(agent="billing").latest, "pk")
                assert left.state == TaskState.WORKING

    async def test_has_the_usage_of_its_task(self) -> None:
        async def use(turn: Turn) -> None:
            await turn.usage(model="m", input_tokens=3, output_tokens=4)

        async def plan(turn: Turn) -> str:
            return str((await turn.call("billing", "x")).usage["m"]["inputTokens"])

        with billing(use), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "3"


class TestAFile:
    async def test_goes_to_the_other_agent_and_comes_back(self, settings: Any) -> None:
        settings.A2A_FILE_INLINE_BYTES = 10
        modes: dict[str, Any] = {"default_input_modes": ["*/*"], "default_output_modes": ["*/*"]}
        content = b"much more than ten bytes"

        async def double(turn: Turn) -> AsyncIterator[Any]:
            read = await turn.read(turn.parts[0])
            yield turn.artifact(file(read + read, "double", "application/pdf"))

        async def plan(turn: Turn) -> AsyncIterator[Any]:
            answer = await turn.call("billing", *turn.parts)
            yield turn.artifact(*answer.parts, name="passed on")
            yield str(len(await turn.read(answer.parts[0])))

        with billing(double, **modes), planning(plan, **modes) as client:
            async with hosting():
                wanted = client.request("x")
                message = replace(wanted.message, parts=(file(content, "one", "application/pdf"),))
                sent = dataclasses.replace(wanted, message=message)
                task = await TABLE["SendMessage"](sent, client.call())
        assert isinstance(task.artifacts, list)
        texts = [bytes(artifact).decode() for artifact in task.artifacts]
        assert json.loads(texts[0])["parts"][0]["url"].startswith("/agents/planner/files/")
        assert json.loads(texts[1])["parts"][0]["text"] == str(2 * len(content))


class TestARefusal:
    async def test_of_an_agent_that_is_not_declared(self) -> None:
        async def call(turn: Turn) -> None:
            await turn.call("billing", "x")

        with billing():
            assert await refusal(call, calls=("search",)) == "planner does not call billing."
            assert await refusal(call, calls=()) == "planner does not call billing."

    async def test_has_the_same_words_for_all_agents_that_the_caller_may_not_use(
        self, settings: Any
    ) -> None:
        async def call(turn: Turn) -> None:
            await turn.call("billing", "x")

        words = "There is no agent billing."
        assert await refusal(call) == words
        with billing():
            settings.A2A_DISABLED_AGENTS = "billing"
            assert await refusal(call) == words
        settings.A2A_DISABLED_AGENTS = ""
        with billing(scopes=("refunds",)):
            assert await refusal(call) == words
        with billing(grants="listed"):
            assert await refusal(call) == words
            await run_in_thread(grants.grant, "billing", "user:alice", "see")
            assert await refusal(call) == words
        with billing(schemes=("mutualTLS",)):
            assert await refusal(call) == words

    async def test_does_not_meet_a_caller_with_a_grant(self) -> None:
        async def plan(turn: Turn) -> str:
            return (await turn.call("billing", "x")).text

        await run_in_thread(grants.grant, "billing", "user:alice", "use")
        with billing(grants="listed"), planning(plan) as client:
            async with hosting():
                assert said(await client.send()) == "billing: x"
        grants.forget()

    async def test_of_a_circle_names_the_path(self) -> None:
        words = list[str]()

        async def back(turn: Turn) -> None:
            await turn.call("planner", "x")

        async def plan(turn: Turn) -> None:
            words.append((await turn.call("billing", "x")).text)

        with billing(back, calls="*"), planning(plan) as client:
            async with hosting():
                await client.send()
        circle = "The agents would call each other in a circle: planner → billing → planner."
        assert words == [circle]

    async def test_of_depth_meets_an_agent_that_may_call_itself(self, settings: Any) -> None:
        settings.A2A_CALL_DEPTH = 3

        async def plan(turn: Turn) -> str:
            try:
                return (await turn.call("planner", "x")).text
            except CallRefused as refused:
                return str(refused)

        with planning(plan, recursive=True) as client:
            async with hosting():
                task = await client.send()
        path = " → ".join(["planner"] * 5)
        assert said(task) == f"Agents call each other to a depth of 3: {path}."
        assert await run_in_thread(Task.objects.count) == 4

    async def test_of_too_many_calls_in_a_turn(self, settings: Any) -> None:
        settings.A2A_CALLS_PER_TURN = 2

        async def plan(turn: Turn) -> str:
            for number in range(3):
                try:
                    await turn.call("billing", "x", name=f"call {number}")
                except CallRefused as refused:
                    return f"{number}: {refused}"
            return "none"

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "2: A turn makes at most 2 calls: planner."
        assert await run_in_thread(Task.objects.filter(agent="billing").count) == 2

    async def test_of_too_large_a_tree(self, settings: Any) -> None:
        settings.A2A_TREE_TASKS = 3

        async def plan(turn: Turn) -> str:
            calls = [turn.call("billing", "x", name=str(number)) for number in range(3)]
            try:
                await turn.gather(*calls)
            except CallRefused as refused:
                return str(refused)
            return "none"

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "Tasks that call each other are at most 3: planner."
        assert await run_in_thread(Task.objects.count) == 3

    async def test_of_too_many_calls_that_continue_one_task(self, settings: Any) -> None:
        settings.A2A_CALLS_PER_TURN = 3

        async def ask(turn: Turn) -> AsyncIterator[Any]:
            yield turn.ask("And now?")

        async def plan(turn: Turn) -> str:
            asked = await turn.call("billing", "x", questions="return")
            for number in range(3):
                name = str(number)
                try:
                    asked = await turn.call("billing", "x", to=asked, name=name, questions="return")
                except CallRefused as refused:
                    return f"{number}: {refused}"
            return "none"

        with billing(ask), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "2: A turn makes at most 3 calls: planner."

    async def test_of_size_does_not_meet_a_call_that_adds_no_task(self, settings: Any) -> None:
        settings.A2A_TREE_TASKS = 2

        async def ask(turn: Turn) -> AsyncIterator[Any]:
            yield "done" if turn.text == "more" else turn.ask("And now?")

        async def plan(turn: Turn) -> str:
            asked = await turn.call("billing", "x", questions="return")
            try:
                return (await turn.call("billing", "more", to=asked, name="more")).text
            except CallRefused as refused:
                return str(refused)

        with billing(ask), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert said(task) == "done"

    async def test_of_content_is_what_a_client_would_get(self, settings: Any) -> None:
        async def nothing(turn: Turn) -> None:
            await turn.call("billing")

        async def image(turn: Turn) -> None:
            await turn.call("billing", file(b"x", "x.png", "image/png"))

        async def much(turn: Turn) -> None:
            await turn.call("billing", "x" * 2000)

        with billing():
            assert await refusal(image) == "The agent does not take image/png"
            settings.A2A_MAX_MESSAGE_BYTES = 1000
            assert await refusal(much) == "message must have at most 1000 bytes"
            assert await refusal(nothing) == "message.parts must not be empty"

    async def test_of_a_name_that_was_used(self) -> None:
        words = list[str]()

        async def plan(turn: Turn) -> None:
            await turn.call("billing", "x")
            try:
                await turn.call("billing", "y")
            except ValueError as fault:
                words.append(str(fault))

        with billing(), planning(plan) as client:
            async with hosting():
                await client.send()
        assert words == ["this turn has a step 'call billing' already; number them"]

    async def test_for_endless_seconds(self) -> None:
        async def plan(turn: Turn) -> None:
            with pytest.raises(ValueError, match="the seconds of a call are a finite number"):
                await turn.call("billing", "x", seconds=math.inf)

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert task.status.state is TaskState.COMPLETED
        assert await run_in_thread(Delegation.objects.count) == 0

    async def test_after_a_question_of_the_caller(self) -> None:
        words = list[str]()

        async def plan(turn: Turn) -> AsyncIterator[Any]:
            yield turn.ask("Which one?")
            try:
                await turn.call("billing", "x")
            except AgentError as fault:
                words.append(str(fault))

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.send()
                await until(lambda: bool(words))
        assert task.status.state is TaskState.INPUT_REQUIRED
        assert words == ["An agent that has ended its task, or asked its client, calls nobody."]

    async def test_of_a_client_that_would_pass_for_an_agent(self) -> None:
        with billing() as agent:
            client = Client(agent)
            wanted = client.request("x")
            message = replace(wanted.message, metadata={DELEGATION: {}})
            forged = dataclasses.replace(wanted, message=message)
            async with hosting():
                with pytest.raises(InvalidParams):
                    await TABLE["SendMessage"](forged, client.call())


class TestAnAgentThatTakesNoTasks:
    async def test_is_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tries, real = list[str](), accept_message.accept

        async def refuse(*about: Any) -> Any:
            tries.append("try")
            if len(tries) < 3:
                raise Overloaded("The agent takes no new tasks", retry_after="0.1")
            return await real(*about)

        monkeypatch.setattr(f"{OPERATION}.accept", refuse)

        async def plan(turn: Turn) -> str:
            return (await turn.call("billing", "x")).text

        with billing(), planning(plan) as client:
            async with hosting():
                assert said(await client.send()) == "billing: x"
        assert len(tries) == 3
        assert (await run_in_thread(Run.objects.get, agent="planner")).parked_in == "call billing"

    async def test_is_refused_if_a_budget_never_allows_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def refuse(*about: Any) -> Any:
            raise RateLimited("The budget has nothing left.")

        monkeypatch.setattr(f"{OPERATION}.accept", refuse)

        async def call(turn: Turn) -> None:
            await turn.call("billing", "x")

        with billing():
            assert await refusal(call) == "The budget has nothing left."


class TestExactlyOneChild:
    async def test_though_the_caller_dies_while_it_waits(self) -> None:
        go, attempts = asyncio.Event(), list[int]()

        async def work(turn: Turn) -> str:
            await go.wait()
            return "done"

        async def plan(turn: Turn) -> str:
            attempts.append(turn.attempt)
            return (await turn.call("billing", f"attempt {turn.attempt}")).text

        with billing(work), planning(plan) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: run_in_thread(Delegation.objects.exists))
                await run_in_thread(take_away, task.id)
                await until(lambda: len(attempts) == 2)
                go.set()
                await until(lambda: status_is("completed", task=task.id))
                found = await client.get(task.id)
        assert said(found) == "done"
        assert attempts == [1, 2]
        assert await run_in_thread(Task.objects.filter(agent="billing").count) == 1

    async def test_though_the_answer_of_the_database_is_lost(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, lost = accept.accept_batched, list[bool]()

        async def lose(new: Any) -> Any:
            accepted = await real(new)
            if new.scope.agent == "billing" and not lost:
                lost.append(True)
                raise Overloaded.away(undone=False)
            return accepted

        monkeypatch.setattr(accept_message, "accept_batched", lose)

        async def plan(turn: Turn) -> str:
            return (await turn.call("billing", "x")).text

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.send()
        assert (said(task), lost) == ("billing: x", [True])
        assert await run_in_thread(Task.objects.filter(agent="billing").count) == 1

    async def test_and_none_of_a_caller_that_has_lost_its_task(self) -> None:
        go, refused = asyncio.Event(), asyncio.Event()

        async def plan(turn: Turn) -> str:
            if turn.attempt == 1:
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    refused.set()
                    raise
            return (await turn.call("billing", f"attempt {turn.attempt}")).text

        with billing(), planning(plan) as client:
            async with hosting():
                task = await client.begin()
                await until(lambda: run_in_thread(Run.objects.filter(status="running").exists))
                await run_in_thread(take_away, task.id)
                await until(lambda: status_is("completed", task=task.id))
                go.set()
        child = await run_in_thread(Task.objects.get, agent="billing")
        steps = await run_in_thread(lambda: sorted(Step.objects.values_list("name", flat=True)))
        assert steps == ["call billing", "call billing: answer"]
        assert child.state == TaskState.COMPLETED
