"""Executors for a2a-sdk 0.3. Nothing in this module knows of the host: it would run in the SDK's own server as well."""

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Part, TaskState, TextPart
from a2a.utils import new_agent_text_message, new_task


class HelloExecutor(AgentExecutor):
    """Says hello, with a message and no task, as first samples do."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer with a message."""
        greeting = f"Hello, world! You said: {context.get_user_input()}"
        await event_queue.enqueue_event(new_agent_text_message(greeting))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Refuse: there is nothing to cancel."""
        raise NotImplementedError("cancel is not supported")


class PoemExecutor(AgentExecutor):
    """Asks for a word, then recites piece by piece."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ask in the first turn, and recite when the task waits for the word."""
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if task.status.state != TaskState.input_required:
            question = updater.new_agent_message([Part(root=TextPart(text="A poem about what?"))])
            await updater.update_status(TaskState.input_required, question, final=True)
            return
        await updater.start_work()
        word = context.get_user_input()
        for number, line in enumerate((f"{word} is a {word}", f" is a {word}.")):
            await updater.add_artifact(
                [Part(root=TextPart(text=line))],
                artifact_id="poem",
                append=number > 0,
                last_chunk=number == 1,
            )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Tell the task that it is cancelled."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
