"""Made-up episodes for the tests of the checker: one in which all went well, in spite of a killed worker."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from lab.faultlab.checker import Limits, Violation, check
from lab.faultlab.dump import (
    ArtifactRow,
    CallRow,
    Dump,
    EventRow,
    KeyRow,
    MessageRow,
    RunRow,
    StepRow,
    TaskRow,
)
from lab.faultlab.folding import ARTIFACT, INPUT, STATUS, fold, said
from lab.faultlab.history import Record

__all__ = ["Story", "clean"]

R = TypeVar("R", bound=msgspec.Struct)
BEGINNING = 1_000_000.0


class Story:
    """An episode under construction: the moment is `now`, in seconds since its beginning."""

    def __init__(self) -> None:
        self.now = 0.0
        self.limits = Limits(max_attempts=3)
        self.history: list[Record] = []
        self.ledger: list[Record] = []
        self.tasks: list[TaskRow] = []
        self.events: list[EventRow] = []
        self.runs: list[RunRow] = []
        self.steps: list[StepRow] = []
        self.messages: list[MessageRow] = []
        self.artifacts: list[ArtifactRow] = []
        self.keys: list[KeyRow] = []
        self.calls: list[CallRow] = []

    # --- telling --------------------------------------------------------------------------

    def client(self, what: str, **members: Any) -> None:
        """A client or the lab tells something."""
        self.history.append(Record(self._moment, what, members))

    def agent(self, what: str, task: str, attempt: int, **members: Any) -> None:
        """An agent writes into its ledger."""
        members = {"task": task, "attempt": attempt, **members}
        self.ledger.append(Record(self._moment, what, members))

    @property
    def _moment(self) -> float:
        return BEGINNING + self.now

    def send(self, key: str, task: str, shape: str, text: str = "") -> None:
        """A client sends, and it is accepted: a task with its first message, or one more message."""
        agent = f"lab-{shape}"
        self.client("sent", key=key, shape=shape, agent=agent, process="web1", text=text)
        if task not in {row.id for row in self.tasks}:
            self._new_task(task, shape)
        run = self._take(task, key, text)
        row = KeyRow(key=key, task=run.task, number=run.input_number, run=run.run)
        self.keys.append(row)
        self.client("accepted", key=key, task=task)

    def call(self, parent: str, child: str, shape: str, text: str = "") -> None:
        """The agent of a task calls another one."""
        self._new_task(child, shape)
        self._take(child, f"message of {child}", text)
        name, caller = f"call lab-{shape}", self.run(parent)
        row = CallRow(
            task=self._task(child).task,
            parent=caller.task,
            input_number=caller.input_number,
            name=name,
            open=False,
            cancel=False,
        )
        self.calls.append(row)
        self.step(parent, name, json.dumps({"task": child}))

    def pass_down(self, child: str, text: str) -> None:
        """An answer goes down to the task that has asked."""
        self._take(child, f"answer of {child}", text)
        self.status(child, "WORKING", by_run=False)

    def _take(self, task: str, name: str, text: str) -> RunRow:
        """Take a message: its event, its row and its run, which is returned."""
        key_of_task = self._task(task).task
        question = fold(event for event in self.events if event.task == key_of_task).question
        if question is not None:
            asked = json.dumps({"messageId": f"question of {name}"})
            row = MessageRow(task=key_of_task, number=question, role="ROLE_AGENT", body=asked)
            self.messages.append(row)
        number = self._append(task, INPUT, {"messageId": name, "parts": [{"text": text}]})
        body = json.dumps({"messageId": name})
        self.messages.append(
            MessageRow(task=key_of_task, number=number, role="ROLE_USER", body=body)
        )
        run = RunRow(
            run=len(self.runs) + 1,
            task=key_of_task,
            input_number=number,
            status="ended",
            attempt=1,
            created_at=self._moment,
            ended_at=self._moment,
        )
        self.runs.append(run)
        return run

    def _new_task(self, task: str, shape: str) -> None:
        self.tasks.append(
            TaskRow(
                task=len(self.tasks) + 1,
                id=task,
                agent=f"lab-{shape}",
                state="TASK_STATE_SUBMITTED",
                last_event=0,
                created_at=self._moment,
            )
        )

    def status(self, task: str, state: str, text: str = "", *, by_run: bool = True) -> None:
        """The status changes; with a text it has a message."""
        status: dict[str, Any] = {"state": f"TASK_STATE_{state}", "timestamp": str(self.now)}
        if text:
            status["message"] = {"role": "ROLE_AGENT", "parts": [{"text": text}]}
        number = self._append(task, STATUS, {"status": status}, by_run=by_run)
        self._fold(task)
        self.see(task, number)

    def piece(
        self,
        task: str,
        text: str,
        *,
        append: bool = False,
        last: bool = False,
        artifact: str = "page",
    ) -> None:
        """A piece of an artifact of the task."""
        update = {
            "artifact": {"artifactId": artifact, "parts": [{"text": text}]},
            "append": append,
            "lastChunk": last,
        }
        number = self._append(task, ARTIFACT, update)
        self._fold(task)
        self.see(task, number)

    def _append(
        self, task: str, kind: int, body: dict[str, Any] | None = None, *, by_run: bool = True
    ) -> int:
        row = self._task(task)
        number = row.last_event + 1
        state = body["status"]["state"] if body and kind == STATUS else ""
        run = self.run(task).run if by_run and kind != INPUT else None
        self.events.append(
            EventRow(
                task=row.task,
                number=number,
                kind=kind,
                state=state,
                run=run,
                body=json.dumps(body) if body else "",
                created_at=self._moment,
            )
        )
        self.change(row, last_event=number)
        return number

    def _fold(self, task: str) -> None:
        """Bring the rows up to the log, as the host does."""
        row = self._task(task)
        folded = fold(self.log(task))
        said_last = (folded.status or {}).get("message")
        message = json.dumps(said_last) if said_last else ""
        self.change(row, state=folded.state, status_message=message)
        self.artifacts = [a for a in self.artifacts if a.task != row.task] + [
            ArtifactRow(task=row.task, position=n, artifact_id=name, body=json.dumps(artifact))
            for n, (name, artifact) in enumerate(folded.artifacts.items())
        ]
        if self.runs and folded.state.endswith(("ED", "REQUIRED")):
            self.change(self.run(task), ended_at=self._moment)

    # --- streams --------------------------------------------------------------------------

    def follow(self, task: str, stream: str, after: int | None = None, how: str = "send") -> None:
        """A client's stream opens; without a cursor it begins with the Task. It sees what comes from now on."""
        self.client(
            "opened", stream=stream, task=None, after=after, how=how, process=f"web{len(stream)}"
        )
        if after is None:
            self.client(
                "frame",
                stream=stream,
                task=task,
                id=self._task(task).last_event,
                kind="task",
                body=self.view(task),
            )
        self._open()[stream] = task
        for event in self.log(task) if after is not None else []:
            if event.number > (after or 0):
                self._show(stream, task, event)

    def _open(self) -> dict[str, str]:
        """The streams that are open, and their tasks."""
        found: dict[str, str] = self.__dict__.setdefault("following", {})
        return found

    def see(self, task: str, number: int) -> None:
        """Everybody who follows the task is shown an event."""
        for stream, followed in self._open().items():
            if followed == task:
                self._show(stream, task, self.log(task)[number - 1])

    def _show(self, stream: str, task: str, event: EventRow) -> None:
        if event.kind == INPUT:
            return
        body = {"taskId": task, "contextId": "c", **said(event)}
        kind = "status" if event.kind == STATUS else "artifact"
        self.client("frame", stream=stream, task=task, id=event.number, kind=kind, body=body)

    def leave(self, stream: str, how: str = "end") -> None:
        """A stream is over."""
        del self._open()[stream]
        self.client("closed", stream=stream, how=how)

    def view(self, task: str) -> dict[str, Any]:
        """What GetTask says."""
        folded = fold(self.log(task))
        status = folded.status or {"state": folded.state, "timestamp": "0"}
        artifacts = list(folded.artifacts.values())
        more = {"artifacts": artifacts} if artifacts else {}
        return {"id": task, "contextId": "c", "status": status, **more}

    # --- looking and spoiling ---------------------------------------------------------------

    def _task(self, task: str) -> TaskRow:
        return next(row for row in self.tasks if row.id == task)

    def task(self, task: str) -> TaskRow:
        """The task's row."""
        return self._task(task)

    def run(self, task: str) -> RunRow:
        """The newest run of a task."""
        return [run for run in self.runs if run.task == self._task(task).task][-1]

    def log(self, task: str) -> list[EventRow]:
        """The task's events."""
        return [event for event in self.events if event.task == self._task(task).task]

    def step(self, task: str, name: str, result: str = '"ok"') -> None:
        """A step's result is kept."""
        run = self.run(task)
        self.steps.append(
            StepRow(
                task=run.task,
                input_number=run.input_number,
                name=name,
                result=result,
                run=run.run,
                created_at=self._moment,
            )
        )

    def effect(self, task: str, step: str, attempt: int, seconds: float = 0.1) -> None:
        """A step's body is carried out."""
        begun, self.now = self._moment, self.now + seconds
        self.agent("effect", task, attempt, step=step, begun=begun, ended=self._moment, pid=0)

    def change(self, row: R, **changes: Any) -> None:
        """Put another row in the place of one."""
        for table in self.tables():
            for index, other in enumerate(table):
                if other is row:
                    table[index] = msgspec.structs.replace(row, **changes)

    def drop(self, row: msgspec.Struct) -> None:
        """Take a row away."""
        for table in self.tables():
            table[:] = [other for other in table if other is not row]

    def tables(self) -> Iterator[list[Any]]:
        """All tables."""
        yield from (self.tasks, self.events, self.runs, self.steps)
        yield from (self.messages, self.artifacts, self.keys, self.calls)

    def record(self, what: str, nth: int = 0, **like: Any) -> Record:
        """A record of the history or the ledger that has these members."""
        both = [*self.history, *self.ledger]
        found = [r for r in both if r.what == what and like.items() <= dict(r.said).items()]
        return found[nth]

    def retell(self, record: Record, *, later: float = 0.0, **members: Any) -> None:
        """Put another record in the place of one."""
        other = Record(record.t + later, record.what, {**record.said, **members})
        for records in (self.history, self.ledger):
            records[:] = [other if r is record else r for r in records]

    def untell(self, record: Record) -> None:
        """Take a record away."""
        for records in (self.history, self.ledger):
            records[:] = [r for r in records if r is not record]

    def dump(self) -> Dump:
        """The rows."""
        return Dump(
            tasks=tuple(self.tasks),
            events=tuple(sorted(self.events, key=lambda x: (x.task, x.number))),
            runs=tuple(self.runs),
            steps=tuple(self.steps),
            messages=tuple(sorted(self.messages, key=lambda x: (x.task, x.number))),
            artifacts=tuple(self.artifacts),
            keys=tuple(self.keys),
            calls=tuple(self.calls),
        )

    def copy(self) -> Story:
        """The same, to be spoilt."""
        return copy.deepcopy(self)

    def violations(self) -> list[Violation]:
        """What the checker says."""
        return check(self.history, self.ledger, self.dump(), self.limits)


def clean() -> Story:
    """A worker dies between two steps, a question is answered, a task is cancelled, a database is away for a moment.

    A text begins anew after its run was handed back, and the question of a called task is answered.
    """
    story = Story()
    _steps_survive(story)
    _a_question_is_answered(story)
    _a_task_is_cancelled(story)
    _a_text_is_told(story)
    _a_tree_is_answered(story)
    story.now = 30
    story.client("refused", key="k9", status=503, code=-32000, retry_after="1")
    return story


def _steps_survive(story: Story) -> None:
    story.now = 0
    story.send("k1", "steps", "steps")
    story.follow("steps", "s")
    story.now = 1
    story.agent("began", "steps", 1, run=None, pid=11, agent="lab-steps")
    story.status("steps", "WORKING", "a1:0")
    story.effect("steps", "step-0", 1)
    story.step("steps", "step-0")
    story.now = 2
    story.client("fault", name="worker.step_kept", process="worker1", pid=11, action="kill")
    story.client("process", name="worker1", pid=11, event="died", code=-9)
    story.now = 9
    story.agent("began", "steps", 2, run=None, pid=12, agent="lab-steps")
    story.status("steps", "WORKING", "a2:0")
    story.effect("steps", "step-1", 2)
    story.step("steps", "step-1")
    story.piece("steps", "a2:0;")
    story.piece("steps", "a2:1;", append=True, last=True)
    story.status("steps", "COMPLETED", "a2:done")
    story.change(story.run("steps"), attempt=2)
    story.leave("s")
    story.client("got", task="steps", view=story.view("steps"))


def _a_question_is_answered(story: Story) -> None:
    story.now = 10
    story.send("k2", "ask", "ask")
    story.follow("ask", "q")
    story.agent("began", "ask", 1, run=None, pid=12, agent="lab-ask")
    story.status("ask", "WORKING")
    story.status("ask", "INPUT_REQUIRED", "a1:what?")
    story.leave("q")
    story.now = 11
    story.send("k3", "ask", "ask")
    story.status("ask", "WORKING", by_run=False)
    story.follow("ask", "qq", after=3, how="subscribe")
    story.agent("began", "ask", 1, run=None, pid=12, agent="lab-ask")
    story.leave("qq", "cut")
    story.piece("ask", "a1:thanks;", last=True)
    story.status("ask", "COMPLETED")
    story.follow("ask", "qqq", after=5, how="subscribe")
    story.leave("qqq")


def _a_task_is_cancelled(story: Story) -> None:
    story.now = 20
    story.send("k4", "forever", "forever")
    story.agent("began", "forever", 1, run=None, pid=12, agent="lab-forever")
    story.status("forever", "WORKING", "a1:0")
    story.now = 21
    story.client("cancelling", task="forever")
    story.status("forever", "CANCELED", by_run=False)
    story.client("cancelled", task="forever")
    story.change(story.run("forever"), status="canceled")
    story.now = 21.3
    story.agent("tick", "forever", 1)


def _a_text_is_told(story: Story) -> None:
    story.now = 25
    story.send("k8", "tell", "tell", "1")
    story.follow("tell", "t")
    story.agent("began", "tell", 1, run=None, pid=14, agent="lab-tell")
    story.status("tell", "WORKING")
    story.piece("tell", "a1:0;", artifact="answer")
    story.piece("tell", "a1:0;", artifact="notes")
    story.piece("tell", "a1:0;", artifact="ledger")
    story.client("got", task="tell", view=story.view("tell"))
    story.leave("t", "cut")
    story.now = 27
    story.agent("began", "tell", 1, run=None, pid=12, agent="lab-tell")
    story.piece("tell", "a1:0;", artifact="answer")
    story.piece("tell", "a1:0;", artifact="notes")
    story.piece("tell", "a1:0;", artifact="ledger")
    story.follow("tell", "tt", after=8, how="subscribe")
    story.piece("tell", "a1:0 kept;", append=True, artifact="answer")
    story.piece("tell", "a1:0 rested;", append=True, artifact="notes")
    story.piece("tell", "a1:0 rested;", append=True, artifact="ledger")
    story.piece("tell", "a1:slept;a1:done;", append=True, last=True, artifact="answer")
    story.status("tell", "COMPLETED")
    story.leave("tt")
    story.client("got", task="tell", view=story.view("tell"))
    old = {**story.view("tell"), "status": {"state": "completed"}}
    story.client("read", task="tell", dialect="0.3", view=old)


def _a_tree_is_answered(story: Story) -> None:
    story.now = 28
    story.send("k6", "tree", "tree", "question")
    story.status("tree", "WORKING", "a1:calling")
    story.call("tree", "leaf", "leaf", "question")
    story.status("leaf", "WORKING", "a1:0")
    story.status("leaf", "INPUT_REQUIRED", "what?")
    story.status("tree", "INPUT_REQUIRED", "what?")
    story.send("k7", "tree", "tree", "answer 7")
    story.status("tree", "WORKING", by_run=False)
    story.pass_down("leaf", "answer 7")
    story.status("leaf", "COMPLETED", "a1:answer 7")
    story.status("tree", "COMPLETED", "a1:completed (a1:answer 7)")
