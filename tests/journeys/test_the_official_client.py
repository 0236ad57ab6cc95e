"""The published a2a-sdk client holds a conversation with two processes of a host, over each binding, and one task is met by all."""

from __future__ import annotations

import json

import httpx
import pytest
from a2a.types import TaskState
from a2a.utils import errors

from tests.journeys.admin import TASKS, signed_in
from tests.journeys.hosts import Host
from tests.journeys.sdk import BINDINGS, last_state, official, said, word
from tests.journeys.waiting import PATIENCE
from tests.support.people import Person

S = TaskState


@pytest.mark.parametrize("binding", [*BINDINGS, "GRPC"])
async def test_it_sends_streams_answers_and_cancels_at_either_process(
    site: Host, binding: str
) -> None:
    """Every case of every binding, version and generation is in the campaign (`lab/clients`)."""
    async with official(site.here, binding) as here, official(site.there, binding) as there:
        text = word()
        task = await here.send(f"echo {text}")
        assert said(*task.artifacts) == text
        assert await there.get(task.id) == task

        events = await here.stream("chunks 20")
        updates = [e.artifact_update for e in events if e.HasField("artifact_update")]
        assert [update.append for update in updates] == [False] + [True] * 19
        assert last_state(events) == S.TASK_STATE_COMPLETED
        streamed = await there.get(events[0].task.id)
        assert said(*streamed.artifacts) == said(*[update.artifact for update in updates])

        asked = await here.send("ask Who?")
        assert asked.status.state == S.TASK_STATE_INPUT_REQUIRED
        done = await there.send(text, task=asked.id)
        assert (done.id, done.context_id) == (asked.id, asked.context_id)
        assert text in said(*done.artifacts)

        slow = await here.start("slow 60")
        stream = here.subscription(slow.id)
        heard = [await anext(stream)]
        assert (await there.cancel(slow.id)).status.state == S.TASK_STATE_CANCELED
        heard += [event async for event in stream]
        assert last_state(heard) == S.TASK_STATE_CANCELED

        page = await there.list(context_id=task.context_id)
        assert [one.id for one in page.tasks] == [task.id]
        with pytest.raises(errors.TaskNotCancelableError):
            await there.cancel(task.id)
        with pytest.raises(errors.TaskNotFoundError):
            await there.get(f"no-{word()}")


async def test_a_task_made_by_grpc_is_streamed_by_sse_cancelled_over_http_and_listed_in_the_admin(
    site: Host, operator: Person
) -> None:
    async with (
        official(site.here, "GRPC") as client,
        httpx.AsyncClient(base_url=site.there, timeout=PATIENCE, trust_env=False) as http,
        signed_in(site.there, operator) as browser,
    ):
        task = await client.start("slow 60")
        at = f"/agents/demo/a2a/1.0/tasks/{task.id}"
        async with http.stream("POST", f"{at}:subscribe") as answer:
            lines = (line async for line in answer.aiter_lines() if line.startswith("data: "))
            first = json.loads((await anext(lines)).removeprefix("data: "))
            assert first["task"]["id"] == task.id
            canceled = (await http.post(f"{at}:cancel")).json()
            assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
            *_, last = [line async for line in lines]
            assert "TASK_STATE_CANCELED" in last
        assert (await client.get(task.id)).status.state == S.TASK_STATE_CANCELED
        assert task.id in (await browser.get(TASKS)).text
