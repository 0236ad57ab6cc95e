"""Executors of the a2a-sdk. Nothing in this module knows of the host: it would run in the SDK's own server as well."""

from __future__ import annotations

import asyncio

from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import TaskState

LINES = ("{word} is a {word}", " is a {word}", " is a {word}.")


class HelloExecutor(AgentExecutor):
    """Says hello, as the first sample of the a2a-sdk does."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Make a task, report progress, answer with an artifact, and complete the task."""
        updater = await begin(context, event_queue)
        await updater.start_work(new_text_message("Thinking ..."))
        await updater.add_artifact(
            [new_text_part(f"Hello, world! You said: {context.get_user_input()}")],
            artifact_id="hello",
            last_chunk=True,
        )
        await updater.complete(new_text_message("Done."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Refuse: there is nothing to cancel."""
        raise NotImplementedError("cancel is not supported")


class PoemExecutor(AgentExecutor):
    """Asks for a word, then recites piece by piece."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ask in the first turn, and recite when the task waits for the word."""
        task = context.current_task
        updater = await begin(context, event_queue)
        if task is None or task.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
            await updater.requires_input(new_text_message("A poem about what?"))
            return
        for number, line in enumerate(LINES):
            await asyncio.sleep(0.01)
            await updater.add_artifact(
                [new_text_part(line.format(word=context.get_user_input()))],
                artifact_id="poem",
                name="poem",
                append=number > 0,
                last_chunk=number == len(LINES) - 1,
            )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Tell the task that it is cancelled."""
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


async def begin(context: RequestContext, event_queue: EventQueue) -> TaskUpdater:
    """Return the updater of the task, which is made for the first message."""
    task = context.current_task
    if task is None and context.message is not None:
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
    if task is None:
        raise ValueError("there is no message")
    return TaskUpdater(event_queue, task.id, task.context_id)
