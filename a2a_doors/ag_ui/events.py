"""The events of a run (AG-UI 1.0), from the events of a task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from a2a_doors.ag_ui.run_input import RunInput
from a2a_doors.texts import Telling, show_message, show_task
from a2a_tasks.protocol.files import in_answer, in_event
from a2a_tasks.protocol.forms import find_form
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import (
    INTERRUPTED,
    TERMINAL,
    EventKind,
    LogEvent,
    read_status_body,
)
from a2a_tasks.protocol.operators import CALLS
from a2a_tasks.protocol.values import (
    UNSET,
    ArtifactUpdate,
    Message,
    Task,
    TaskState,
    TaskStatus,
    replace,
)
from a2a_tasks.streaming.stream import EventStream

__all__ = ["RunEvents"]

Event = dict[str, Any]
_update = msgspec.json.Decoder(ArtifactUpdate).decode
_message = msgspec.json.Decoder(Message).decode


class RunShapes:
    """The first and the last event of a run."""

    def __init__(self, run: RunInput, agent: str, task_id: str, context_id: str) -> None:
        self.ids = {"threadId": run.thread_id, "runId": run.run_id}
        self.task = {"taskId": task_id, "contextId": context_id, "agent": agent}

    def begin(self) -> list[Event]:
        """Return the first events; the second has the ids of A2A."""
        return [
            {"type": "RUN_STARTED", **self.ids, "protocolVersion": "1.0"},
            {"type": "CUSTOM", "name": "a2a.task", "value": self.task},
        ]

    def finish(self, outcome: Event) -> Event:
        """Return the last event of a run that did not fail."""
        return {"type": "RUN_FINISHED", **self.ids, "outcome": outcome}


class RunEvents(RunShapes):
    """One run, from RUN_STARTED to RUN_FINISHED or RUN_ERROR, which is the last event."""

    def __init__(self, run: RunInput, agent: str, stream: EventStream) -> None:
        self._stream, self._telling = stream, Telling()
        super().__init__(run, agent, stream.subject.id, stream.subject.context_id)
        #: The id of the text message that is open: one ends with any other event.
        self._message_id = ""
        self._messages = 0
        #: The tasks of other agents that this one waits for.
        self._called: list[str] = []
        #: True after the last event.
        self.over = False

    async def follow(self, idle_seconds: float) -> AsyncIterator[list[Event]]:
        """Yield the further events; none after so many seconds of silence."""
        if self._stream.follower.done:
            yield self._tell_task()
        self._stream.take_first()  # nothing keeps it from here on
        async for events in self._stream.batches(idle_seconds):
            if events is None:
                yield self._tell_task()
            else:
                yield [told for event in events for told in self._tell(event)]
            if self.over:
                return

    def fail(self, code: str, message: str) -> Event:
        """Return the event of a run that breaks off."""
        self.over = True
        return {"type": "RUN_ERROR", "code": code, "message": message}

    def _tell_task(self) -> list[Event]:
        """Return the whole task, where the events of its turn are not there any more."""
        task = self._stream.take_first()
        if not isinstance(task, Task):
            return []
        task = in_answer(task, self._stream.link) if self._stream.link else task
        ended = task.status.state in TERMINAL | INTERRUPTED
        told = self._say(self._telling.add(show_task(task)))
        return [*told, *(self._end(task.status, self._stream.number) if ended else ())]

    def _tell(self, event: LogEvent) -> Iterator[Event]:
        if self.over:
            return
        if self._stream.link is not None:
            event = in_event(event, self._stream.link)
        if event.kind is EventKind.ARTIFACT:
            yield from self._tell_artifact(event)
            return
        status = read_status_body(event.body)
        if event.kind is EventKind.TOOL:
            yield from self._tell_tool(status)
        elif status.state in TERMINAL | INTERRUPTED:
            yield from self._say(self._telling.tell(event) if status.state in TERMINAL else "")
            yield from self._end(status, event.number)
        elif status.message is not None:
            yield from self._tell_work(status.state, _message(status.message))

    def _say(self, text: str) -> Iterator[Event]:
        if text:
            if not self._message_id:
                self._messages += 1
                self._message_id = f"{self.ids['runId']}-{self._messages}"
            chunk = {"messageId": self._message_id, "role": "assistant", "delta": text}
            yield {"type": "TEXT_MESSAGE_CHUNK", **chunk}

    def _other(self, kind: str, **members: Any) -> Event:
        self._message_id = ""
        return {"type": kind, **members}

    def _tell_artifact(self, event: LogEvent) -> Iterator[Event]:
        """Yield the text of an artifact; one with data also as it is."""
        update = _update(event.body)
        artifact = update.artifact
        if any(part.data is not UNSET for part in artifact.parts):
            yield self._other("CUSTOM", name="a2a.artifact", value=msgspec.to_builtins(update))
            parts = tuple(part for part in artifact.parts if part.data is UNSET)
            body = write(replace(update, artifact=replace(artifact, parts=parts)))
            event = replace(event, body=body.decode())
        yield from self._say(self._telling.tell(event))

    def _tell_tool(self, status: TaskStatus) -> Iterator[Event]:
        """Yield a call of a tool, or its result."""
        assert status.message is not None  # noqa: S101 - events of tools have one
        message = _message(status.message)
        data: Any = message.parts[0].data
        if call := data.get("toolCall"):
            names = {"toolCallId": call["id"], "toolCallName": call["name"]}
            yield self._other("TOOL_CALL_START", **names)
            arguments = write(call["arguments"]).decode()
            yield self._other("TOOL_CALL_ARGS", toolCallId=call["id"], delta=arguments)
            yield self._other("TOOL_CALL_END", toolCallId=call["id"])
        elif result := data.get("toolResult"):
            content = result["content"]
            text = content if isinstance(content, str) else write(content).decode()
            about = {"messageId": f"{result['id']}:result", "toolCallId": result["id"]}
            yield self._other("TOOL_CALL_RESULT", **about, content=text, role="tool")

    def _tell_work(self, state: TaskState, message: Message) -> Iterator[Event]:
        """Yield what the agent says of its work, and the agents that it has called and waits for."""
        calls = (message.metadata or {}).get(CALLS, ())
        for call in calls:
            if call["taskId"] not in self._called:
                self._called.append(call["taskId"])
                yield self._other(
                    "SUBAGENT_STARTED", subagentRunId=call["taskId"], name=call["agent"]
                )
        if not calls:
            yield from self._finish_calls({"type": "success"})
        about = {"messageId": f"{self.task['taskId']}:status", "activityType": "a2a.status"}
        content = {"state": state.word, "text": show_message(message)}
        yield self._other("ACTIVITY_SNAPSHOT", **about, content=content)

    def _finish_calls(self, outcome: Event) -> Iterator[Event]:
        while self._called:
            called = self._called.pop(0)
            yield self._other("SUBAGENT_FINISHED", subagentRunId=called, outcome=outcome)

    def _end(self, status: TaskStatus, number: int) -> Iterator[Event]:
        """Yield the last events of a run."""
        waits, state = status.state in INTERRUPTED, status.state
        yield from self._finish_calls({"type": "suspended" if waits else "success"})
        if state in {TaskState.FAILED, TaskState.REJECTED}:
            words = show_message(status.message) if status.message else ""
            yield self.fail(f"AGENT_{state.word.upper()}", words or f"The task is {state.word}")
            return
        if state is TaskState.COMPLETED:
            yield from self._say(self._telling.finish())
            outcome: Event = {"type": "success"}
        elif waits:
            outcome = {"type": "interrupt", "interrupts": [self._ask(status, number)]}
        else:
            outcome = {"type": "cancelled"}
        self.over = True
        yield self.finish(outcome)

    def _ask(self, status: TaskStatus, number: int) -> Event:
        question = _message(status.message) if status.message else None
        form = find_form(question) if question else None
        return {
            "id": f"{self.task['taskId']}:{number}",
            "reason": status.state.word.replace("-", "_"),
            "message": show_message(question) if question else "",
            **({"responseSchema": form} if form else {}),
        }
