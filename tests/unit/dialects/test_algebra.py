"""The algebra of dialects: reading undoes writing, what cannot be said degrades by rule, streams fold to tasks.

Each law holds for every form of the wire. What is right is said by the model in `strategies`, which was written from
the reference (§3, §4, §8.6, §9 of the notes on dialects; decision 9), not from the code.
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as changed
from functools import wraps
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from a2a_tasks.protocol.catalogue import OPERATIONS
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.dialects.trees import TreeDialect
from a2a_tasks.protocol.errors import A2AError, InvalidParams, MethodNotFound
from a2a_tasks.protocol.jsontext import read, write
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent, fold
from a2a_tasks.protocol.requests import (
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetPushConfigRequest,
    GetTaskRequest,
    ListTasksRequest,
    Request,
    SendMessageRequest,
)
from a2a_tasks.protocol.rest import Match
from a2a_tasks.protocol.values import (
    UNSET,
    Message,
    Part,
    PushConfig,
    PushConfigPage,
    Raw,
    Role,
    Task,
    TaskPage,
    TaskState,
    TaskStatus,
    replace,
)
from tests.support.rows import rows
from tests.unit.dialects import strategies as says
from tests.unit.dialects.strategies import FORMS, Asking, Case, Form, Log, Tree, lean, plain

S = TaskState
Law = TypeVar("Law", bound=Callable[..., None])

PROTOJSON = [form for form in FORMS if form.protojson]
#: All but the oldest: those have no direct messages (P9), and list no push configs.
NEWER = [form for form in FORMS if not form.oldest]
ROUTED = [form for form in FORMS if form.dialect.routes]
LISTING = [form for form in FORMS if form.code in says.LISTING]
every_form = rows("form", FORMS, ids=str)


def held_in(forms: Iterable[Form]) -> Callable[[Law], Law]:
    """Hold a law in each of these forms with the same examples: to make one costs more than to check it ten times."""
    found = list(forms)
    assert found

    def decorate(law: Law) -> Law:
        @wraps(law)
        def held(self: Any, *drawn: Any, **more: Any) -> None:
            for form in found:
                note(f"in the form {form}")
                law(self, form, *drawn, **more)

        of = inspect.signature(law)
        made: Any = held
        made.__signature__ = of.replace(
            parameters=[each for each in of.parameters.values() if each.name != "form"]
        )
        return cast("Law", made)

    return decorate


def laws(share: int = 1) -> settings:
    """Settings of a law: a share of the examples of the profile, which is Hypothesis's own if none is loaded."""
    usual = settings.default
    assert usual is not None
    return settings(
        max_examples=max(usual.max_examples // share, 1),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def sent(form: Form, params: Tree) -> SendMessageRequest:
    request = form.dialect.decode("SendMessage", read(write(params)))
    assert isinstance(request, SendMessageRequest)
    return request


def written(form: Form, message: Message) -> Tree:
    if isinstance(form.dialect, TreeDialect):
        tree: Tree = plain(form.dialect.message(plain(message)))
        return tree
    found: Tree = plain(message)
    return found


def compared(form: Form, message: Message | Tree) -> Tree:
    """A message for comparing: without the id and the context that are no part of it in the oldest dialects."""
    tree: Tree = lean(plain(message))
    outside = {"messageId", "contextId"} if form.oldest else set()
    return {key: value for key, value in tree.items() if key not in outside}


class TestReading:
    """Law 1: decoding undoes encoding."""

    @given(says.askings)
    @laws(4)
    @held_in(FORMS)
    def test_a_send_gives_what_was_meant(self, form: Form, asking: Asking) -> None:
        asking = changed(asking, message=says.sayable(form, asking.message))
        found = sent(form, says.spelled_send(form, asking))
        expected = says.understood_send(form, asking)
        assert compared(form, found.message) == compared(form, expected.message)
        assert found.message.context_id == asking.message.context_id
        assert changed(found, message=expected.message) == expected

    @given(says.messages)
    @laws(4)
    @held_in(FORMS)
    def test_a_message_as_the_dialect_writes_it_gives_the_message(
        self, form: Form, message: Message
    ) -> None:
        message = says.sayable(form, message)
        found = sent(form, _asking(form, written(form, message)))
        assert compared(form, found.message) == compared(form, message)

    @rows("form", [f for f in FORMS if f.oldest], ids=str)
    def test_messages_without_an_id_are_told_apart(self, form: Form) -> None:
        ids = {sent(form, _asking(form, written(form, SIMPLE))).message.message_id for _ in "ab"}
        assert len(ids) == 2

    @given(says.any_ids, says.named_configs, says.counts)
    @laws(6)
    @held_in(FORMS)
    def test_requests_about_a_task_give_what_was_meant(
        self, form: Form, task: str, config: PushConfig, length: int | None
    ) -> None:
        for case in says.simple_cases(form, task=task, config=config, length=length):
            assert form.dialect.decode(case.operation, case.params) == case.request

    @given(says.listings, says.milliseconds)
    @laws(6)
    @held_in(FORMS)
    def test_a_question_for_tasks_gives_what_was_meant(
        self, form: Form, asked: ListTasksRequest, milliseconds: int | None
    ) -> None:
        case = says.list_case(form, asked, milliseconds)
        if form.code not in says.LISTING:
            with pytest.raises(MethodNotFound):
                form.dialect.decode(case.operation, case.params)
            return
        assert form.dialect.decode(case.operation, case.params) == case.request


def _asking(form: Form, message: Tree) -> Tree:
    return {"message": message} | ({"id": "t"} if form.oldest else {})


class TestWriting:
    """Law 2: what a dialect cannot say degrades as the table says (P1 to P26), and only that is lost."""

    @given(says.tasks)
    @laws(4)
    @held_in(FORMS)
    def test_a_task_is_spelled_as_the_table_says(self, form: Form, task: Task) -> None:
        expected = lean(says.spelled_task(form, plain(task)))
        assert lean(read(form.dialect.answer("GetTask", task))) == expected
        assert lean(read(form.dialect.answer("CancelTask", task))) == expected
        assert lean(read(form.dialect.answer("SendMessage", task))) == says.spelled_result(
            form, "task", expected
        )

    @every_form
    @rows("state", S)
    def test_a_state_has_its_word(self, form: Form, state: TaskState) -> None:
        task = Task(
            id="t", context_id="c", status=TaskStatus(state=state, timestamp=says.moment(0))
        )
        status = read(form.dialect.answer("GetTask", task))["status"]
        assert status == says.spelled_status(form, plain(task.status))

    @given(says.messages)
    @laws(4)
    @held_in(NEWER)
    def test_a_direct_message_is_spelled_as_the_table_says(
        self, form: Form, message: Message
    ) -> None:
        expected = says.spelled_result(form, "message", says.spelled_message(form, plain(message)))
        raw = Raw(write(message))
        assert lean(read(form.dialect.answer("SendMessage", raw))) == lean(expected)
        (item,) = form.dialect.first(Subject("t", "c"), raw, ended=True)
        assert lean(read(item)) == lean(expected)

    @rows("form", ROUTED, ids=str)
    def test_a_result_over_http_is_wrapped(self, form: Form) -> None:
        """§3.4, §3.5, C-01: bare results are a matter of the draft's JSON-RPC alone."""
        task = Task(
            id="t", context_id="c", status=TaskStatus(state=S.WORKING, timestamp=says.moment(0))
        )
        rest = form.dialect.rest
        assert read(rest.answer("SendMessage", task)).keys() == {"task"}
        (item,) = rest.first(Subject.of(task), task, ended=False)
        assert read(item).keys() == {"task"}

    @given(says.logs)
    @laws(4)
    @held_in(FORMS)
    def test_an_event_is_spelled_as_the_table_says(self, form: Form, log: Log) -> None:
        subject = Subject.of(log.start)
        known = [artifact["artifactId"] for artifact in plain(log.start).get("artifacts", [])]
        for event in log.shown:
            body = read(event.body.encode())
            name = body.get("artifact", {}).get("artifactId")
            if name is not None and name not in known:
                known.append(name)
            expected = says.spelled_event(
                form, log.start, body, position=known.index(name) if name else 0, final=False
            )
            kind = "statusUpdate" if event.kind is EventKind.STATUS else "artifactUpdate"
            item = lean(read(form.dialect.event(subject, event, final=False)))
            assert item == lean(says.spelled_result(form, kind, expected))

    @given(says.messages)
    @laws(4)
    @example(
        Message(
            message_id="m",
            role=Role.USER,
            parts=(
                Part(data=None, media_type="x", metadata={"value": 1}),
                Part(data={"value": []}),
            ),
        )
    )
    @held_in(FORMS)
    def test_a_message_read_back_has_lost_only_what_the_table_says(
        self, form: Form, message: Message
    ) -> None:
        """U13 among others: values that are no objects come back as they were."""
        found = sent(form, _asking(form, written(form, message)))
        assert compared(form, found.message) == compared(form, lean(says.heard(form, message)))

    @given(says.push_configs)
    @laws(6)
    @held_in(FORMS)
    def test_a_push_config_is_spelled_without_its_secrets(
        self, form: Form, config: PushConfig
    ) -> None:
        expected = says.spelled_push(form, config)
        answer = form.dialect.answer("GetTaskPushNotificationConfig", config)
        assert read(answer) == expected

    @given(st.lists(says.push_configs, max_size=3))
    @laws(6)
    @held_in(NEWER)
    def test_push_configs_are_listed_as_the_table_says(
        self, form: Form, configs: list[PushConfig]
    ) -> None:
        page = PushConfigPage(configs=configs)
        found = read(form.dialect.answer("ListTaskPushNotificationConfigs", page))
        expected = [says.spelled_push(form, config) for config in configs]
        assert (found if form.kinds else found["configs"]) == expected

    @given(st.lists(says.listed, max_size=2))
    @laws(10)
    @held_in(LISTING)
    def test_a_page_of_tasks_has_the_tasks_in_their_spelling(
        self, form: Form, tasks: list[Task]
    ) -> None:
        page = TaskPage(tasks=tasks, next_page_token="", page_size=7, total_size=9)
        found = read(form.dialect.answer("ListTasks", page))
        expected = lean([says.spelled_task(form, plain(task)) for task in tasks])
        if form.content == "content":  # the table of 0.3 has a bare array
            assert lean(found) == expected
            return
        assert lean(found.pop("tasks")) == expected
        assert found == {"nextPageToken": "", "pageSize": 7, "totalSize": 9}


class Client:
    """What one who follows a task knows, by the rules of its dialect alone (§4.6)."""

    def __init__(self, form: Form, task: Tree) -> None:
        self.form, self.task = form, dict(task)
        name = "index" if form.oldest else "artifactId"
        self.name, self.artifacts = name, {each[name]: each for each in task.get("artifacts", [])}
        self.finals: list[bool] = []

    def hear(self, items: Iterable[bytes]) -> None:
        for item in items:
            self._hear(*self._opened(read(item)))

    def _opened(self, item: Tree) -> tuple[str, Tree]:
        """The kind of an item, and what it says."""
        if self.form.wrapped:
            ((kind, said),) = item.items()
            return kind, said
        if "artifact" in item:
            kind = "artifactUpdate"
        else:
            kind = "task" if "final" not in item else "statusUpdate"
        if self.form.kinds:
            names = {
                "task": "task",
                "status-update": "statusUpdate",
                "artifact-update": "artifactUpdate",
            }
            assert names[item.pop("kind")] == kind
        return kind, item

    def _hear(self, kind: str, said: Tree) -> None:
        if kind == "task":
            self.__init__(self.form, said)  # type: ignore[misc]
            return
        if not self.form.oldest:
            assert said["contextId"] == self.task["contextId"]
        assert said["id" if self.form.oldest else "taskId"] == self.task["id"]
        if kind == "statusUpdate":
            self.task["status"] = said["status"]
            self.finals.append(said.get("final", False))
            assert ("final" in said) == self.form.final
            return
        self.finals.append(False)
        self._grow(said["artifact"], said["artifact"] if self.form.oldest else said)

    def _grow(self, artifact: Tree, flags: Tree) -> None:
        append = flags.get("append", False)
        piece = {
            key: value for key, value in artifact.items() if key not in {"append", "lastChunk"}
        }
        known = self.artifacts.get(piece[self.name])
        if append and known is not None:
            piece = {**known, "parts": known["parts"] + piece["parts"]}
        self.artifacts[piece[self.name]] = piece

    @property
    def knows(self) -> Tree:
        found = list(self.artifacts.values())
        if self.form.oldest:
            found.sort(key=lambda artifact: artifact["index"])
        return {**self.task, **({"artifacts": found} if found else {})}


def got(form: Form, task: Task) -> Tree:
    """The task as GetTask answers, without its history."""
    found: Tree = read(form.dialect.answer("GetTask", replace(task, history=UNSET)))
    found.pop("kind", None)
    if not found.get("artifacts", True):
        found.pop("artifacts")
    return found


def streamed(form: Form, start: Task, events: list[LogEvent]) -> list[bytes]:
    """The items of a stream that begins at `start` and ends with the last event."""
    subject = Subject.of(start)
    items = form.dialect.first(subject, replace(start, history=UNSET), ended=not events)
    last = len(events) - 1
    more = [form.dialect.event(subject, each, final=n == last) for n, each in enumerate(events)]
    return [*items, *more]


def until_status(events: list[LogEvent]) -> list[LogEvent]:
    """The events up to the last status: a stream ends with one."""
    statuses = [n for n, event in enumerate(events) if event.kind is EventKind.STATUS]
    return events[: statuses[-1] + 1] if statuses else []


class TestAStream:
    """Laws 3 and 6: what a stream tells is what GetTask answers, and its end is announced once."""

    @given(says.logs, st.integers(0, 8))
    @laws(2)
    @held_in(FORMS)
    def test_folds_to_the_task_from_wherever_one_joins(
        self, form: Form, log: Log, joined: int
    ) -> None:
        begun = fold(log.start, log.events[:joined])
        rest = list(log.events[joined:])
        client = Client(form, got(form, begun))  # the oldest streams tell no artifacts of before
        client.hear(streamed(form, begun, [event for event in rest if event in log.shown]))
        assert client.knows == got(form, fold(begun, rest))

    @given(says.logs)
    @laws(4)
    @held_in(FORMS)
    def test_of_a_new_task_tells_all_of_it(self, form: Form, log: Log) -> None:
        start = replace(log.start, artifacts=UNSET)
        client = Client(form, {"id": start.id})
        client.hear(streamed(form, start, log.shown))
        expected = got(form, fold(start, log.events))
        if form.oldest:  # of the session and the metadata only answers tell
            expected = {
                key: expected[key] for key in ("id", "status", "artifacts") if key in expected
            }
        assert client.knows == expected

    @given(says.logs)
    @laws(4)
    @held_in(FORMS)
    def test_says_final_once_and_at_its_end(self, form: Form, log: Log) -> None:
        client = Client(form, got(form, log.start))
        client.hear(streamed(form, log.start, until_status(log.shown)))
        assert client.finals.count(True) == (1 if form.final else 0)
        assert not any(client.finals[:-1])

    @given(says.tasks)
    @laws(6)
    @held_in([form for form in FORMS if form.final])
    def test_of_an_ended_task_ends_with_its_status(self, form: Form, task: Task) -> None:
        client = Client(form, got(form, task))
        client.hear(form.dialect.first(Subject.of(task), replace(task, history=UNSET), ended=True))
        assert client.finals == [True]
        assert client.knows == got(form, task)

    @given(says.logs)
    @laws(6)
    @held_in(FORMS)
    def test_has_one_line_of_json_for_an_item(self, form: Form, log: Log) -> None:
        for item in streamed(form, log.start, log.shown):
            assert b"\n" not in item
            assert b"\r" not in item


def real(params: Any, path: str) -> bool:
    """Does the path of a violation lead to a member, or to where one is missing?"""
    steps = path.replace("[", ".[").split(".")
    if path == "params":
        return True
    for n, step in enumerate(steps):
        if step.startswith("["):
            if not isinstance(params, list) or int(step[1:-1]) >= len(params):
                return False
            params = params[int(step[1:-1])]
            continue
        if not isinstance(params, Mapping):
            return False
        found = [name for name in (step, says.snake(step)) if name in params]
        if not found:
            return n == len(steps) - 1
        params = next((params[name] for name in found if params[name] is not None), None)
    return True


def read_or_refused(params: Any, decode: Callable[[], Request]) -> None:
    """Nothing else happens than a request or an error of the protocol that says where."""
    try:
        decode()
    except InvalidParams as refused:
        assert refused.violations or refused.message != InvalidParams.title
        for path, description in refused.violations:
            assert description
            assert real(params, path), (path, says.pretty(params))
    except A2AError:
        pass


SIMPLE = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),))
SEVERAL = [*(operation.name for operation in OPERATIONS), "GetAgentCard"]
MESSAGE_WITH_ODD_KIND = {
    "message": {"kind": [], "messageId": "m", "role": "user", "parts": [{"text": ""}]}
}


class TestAnythingAtAll:
    """Law 4: reading never crashes, and blames what is there."""

    @given(st.sampled_from(SEVERAL), says.any_params)
    @laws(2)
    @example("SendMessage", MESSAGE_WITH_ODD_KIND)
    @held_in(FORMS)
    def test_is_read_or_refused(self, form: Form, operation: str, params: Tree) -> None:
        read_or_refused(params, lambda: form.dialect.decode(operation, params))

    @given(st.sampled_from([None, 1, "x", [], True, [{}]]))
    @laws(10)
    @held_in(FORMS)
    def test_that_is_no_object_is_refused(self, form: Form, params: Any) -> None:
        for operation in SEVERAL:
            with pytest.raises(InvalidParams):
                form.dialect.decode(operation, params)

    @given(says.askings, st.data())
    @laws(2)
    @held_in(FORMS)
    def test_in_the_place_of_something_right_is_read_or_refused(
        self, form: Form, asking: Asking, data: st.DataObject
    ) -> None:
        params = plain(says.spelled_send(form, asking))
        way = data.draw(st.sampled_from(says.spots(params)[1:]))
        params = says.grafted(params, way, data.draw(says.anything))
        read_or_refused(params, lambda: form.dialect.decode("SendMessage", params))

    @given(st.data(), says.any_ids, says.named_configs)
    @laws(4)
    @held_in(FORMS)
    def test_in_a_request_about_a_task_is_read_or_refused(
        self, form: Form, data: st.DataObject, task: str, config: PushConfig
    ) -> None:
        cases = says.simple_cases(form, task=task, config=config, length=1)
        case = data.draw(st.sampled_from(cases))
        way = data.draw(st.sampled_from(says.spots(case.params)[1:]))
        params = says.grafted(plain(case.params), way, data.draw(says.anything))
        read_or_refused(params, lambda: form.dialect.decode(case.operation, params))

    @given(st.data(), says.any_params)
    @laws(4)
    @held_in(ROUTED)
    def test_below_a_route_is_read_or_refused(
        self, form: Form, data: st.DataObject, said: Tree
    ) -> None:
        route = data.draw(st.sampled_from(form.dialect.rest.routes))
        names = [part.partition("}")[0] for part in route.path.split("{")[1:]]
        match = Match(route.operation, {name: data.draw(says.words) for name in names})
        params = {**said, **match.params}
        read_or_refused(params, lambda: form.dialect.rest.decode_route(match, said, said))


def required(form: Form) -> list[tuple[str, ...]]:
    ways = [("message",), ("message", "role"), ("message", form.content)]
    if form.oldest:
        ways.append(("id",))
    else:
        ways.append(("message", "messageId"))
    return ways


class TestWhatIsRequired:
    @every_form
    @rows("value", [None, "", [], {}, 0, False, "x", UNSET], ids=repr)
    def test_is_missed(self, form: Form, value: Any) -> None:
        """§8.6, U20: absent, null, empty or of another kind."""
        for way in required(form):
            if value == "x" and way[-1] in {"id", "messageId"}:
                continue
            params = plain(says.spelled_send(form, Asking(SIMPLE)))
            inner = params["message"] if len(way) > 1 else params
            inner[way[-1]] = value
            if value is UNSET:
                inner.pop(way[-1])
            with pytest.raises(InvalidParams) as refused:
                form.dialect.decode("SendMessage", params)
            assert any(path.startswith(".".join(way)) for path, _ in refused.value.violations)


names_in_snake_case = st.sets(st.sampled_from(says.CAMEL))
names_as_null = st.sets(st.sampled_from(says.OPTIONAL)) | st.just(set(says.OPTIONAL))


def cases_of(form: Form, asking: Asking, config: PushConfig) -> list[Case]:
    """Requests of every operation."""
    send = Case("SendMessage", says.spelled_send(form, asking), says.understood_send(form, asking))
    simple = says.simple_cases(form, task="t", config=config, length=asking.length)
    listing = says.list_case(form, ListTasksRequest(status=S.CANCELED), 1000)
    return [send, *simple, *([listing] if form.code in says.LISTING else [])]


def alike(form: Form, one: Request, other: Request) -> None:
    if isinstance(one, SendMessageRequest) and isinstance(other, SendMessageRequest):
        assert compared(form, one.message) == compared(form, other.message)
        one = changed(one, message=other.message)
    assert one == other


#: The states in the order of the proto's enum.
NUMBERED = [None, S.SUBMITTED, S.WORKING, S.COMPLETED, S.FAILED, S.CANCELED]
NUMBERED += [S.INPUT_REQUIRED, S.REJECTED, S.AUTH_REQUIRED]
#: Forms that name webhooks as resources.
RESOURCES = [form for form in FORMS if form.code == "dr" or form.content == "content"]
WEBHOOK = {"url": "https://example.com/hook"}


class TestSpellings:
    """Law 5: what is spelled otherwise, or said to be absent, reads alike."""

    @given(says.askings, says.named_configs, names_in_snake_case)
    @laws(4)
    @held_in(PROTOJSON)
    def test_in_snake_case_read_alike(
        self, form: Form, asking: Asking, config: PushConfig, names: set[str]
    ) -> None:
        for case in cases_of(form, asking, config):
            params = says.respelled(plain(case.params), names)
            plainly = form.dialect.decode(case.operation, plain(case.params))
            alike(form, form.dialect.decode(case.operation, params), plainly)

    @given(says.askings, names_as_null)
    @laws(2)
    @held_in(FORMS)
    def test_of_absence_in_a_send_read_alike(
        self, form: Form, asking: Asking, names: set[str]
    ) -> None:
        params = plain(says.spelled_send(form, asking))
        found = sent(form, says.nulled_send(form, params, names))
        alike(form, found, sent(form, params))

    @given(says.named_configs, says.counts, names_as_null)
    @laws(6)
    @held_in(FORMS)
    def test_of_absence_in_other_requests_read_alike(
        self, form: Form, config: PushConfig, length: int | None, names: set[str]
    ) -> None:
        _, *others = cases_of(form, Asking(SIMPLE, length=length), config)
        for case in others:
            optional = (
                (*case.optional, "historyLength") if case.operation == "GetTask" else case.optional
            )
            params = says.nulled(plain(case.params), optional, names)
            assert form.dialect.decode(case.operation, params) == case.request

    @given(
        says.askings, says.named_configs, st.sampled_from(["", "unknown", "Message"]), says.anything
    )
    @laws(6)
    @held_in(FORMS)
    def test_with_members_nobody_knows_read_alike(
        self, form: Form, asking: Asking, config: PushConfig, name: str, value: Any
    ) -> None:
        """§8.6: they are ignored."""
        for case in cases_of(form, asking, config):
            params = says.salted(plain(case.params), {name: value})
            plainly = form.dialect.decode(case.operation, plain(case.params))
            alike(form, form.dialect.decode(case.operation, params), plainly)

    @rows("form", [f for f in FORMS if f.code in {"dr", "v10"}], ids=str)
    def test_with_a_kind_read_alike_where_there_is_none(self, form: Form) -> None:
        """§4.3, §4.4, §8.6: a member like any other nobody knows."""
        params = says.spelled_send(form, Asking(SIMPLE))
        assert sent(form, says.salted(params, {"kind": "note"})) == sent(form, params)

    @given(says.messages)
    @laws(6)
    @held_in(RESOURCES)
    def test_of_the_name_of_the_message_read_alike(self, form: Form, message: Message) -> None:
        """§3.4: the proto's field is `request`, its JSON name `message`."""
        said = says.spelled_message(form, plain(message))
        usual = sent(form, {"message": said})
        assert sent(form, {"request": said}) == usual
        assert sent(form, {"request": said, "message": None}) == usual

    @rows("form", PROTOJSON, ids=str)
    @rows(("number", "role"), [(1, Role.USER), (2, Role.AGENT)])
    def test_of_a_role_by_its_number_read_alike(self, form: Form, number: int, role: Role) -> None:
        """§4.2, §8.6: ProtoJSON reads the names and the numbers of enums."""
        message = replace(SIMPLE, role=role)
        said = says.spelled_message(form, plain(message))
        assert sent(form, {"message": said | {"role": number}}).message == message

    @rows("form", [f for f in LISTING if f.protojson], ids=str)
    def test_of_a_state_by_its_number_read_alike(self, form: Form) -> None:
        """§3.6, §4.2, U8: zero is no filter."""
        for number, state in enumerate(NUMBERED):
            request = form.dialect.decode("ListTasks", {"status": number})
            assert request == ListTasksRequest(status=state)

    @given(says.messages, st.sampled_from(["type", "kind", None]))
    @laws(6)
    @held_in([f for f in FORMS if f.tag])
    def test_of_a_parts_discriminator_read_alike(
        self, form: Form, message: Message, tag: str | None
    ) -> None:
        """§4.4: `type` for `kind`, `kind` for `type`, and none where one content tells."""
        said = says.spelled_message(form, plain(message))
        usual = sent(form, _asking(form, said))
        for part in said["parts"]:
            kind = part.pop(form.tag)
            if tag:
                part[tag] = kind
        alike(form, sent(form, _asking(form, said)), usual)

    @rows("form", [f for f in FORMS if f.tag], ids=str)
    @rows("kind", ["", "Text", "texts", 0, 1, False, True, [], {}, ["text"]])
    def test_of_a_discriminator_that_means_nothing_are_refused(self, form: Form, kind: Any) -> None:
        """U1: never guess."""
        said = says.spelled_message(form, plain(SIMPLE))
        said["parts"][0][form.tag] = kind
        with pytest.raises(InvalidParams):
            sent(form, _asking(form, said))

    @rows("form", RESOURCES, ids=str)
    @rows(
        "named",
        [
            {"name": "tasks/t/pushNotificationConfigs/c"},
            {"name": "tasks/t/pushNotifications/c"},
            {"taskId": "t", "configId": "c"},
            {"id": "t", "configId": "c"},
            {"task_id": "t", "config_id": "c", "name": None},
        ],
    )
    def test_of_a_webhooks_name_read_alike(self, form: Form, named: Tree) -> None:
        for operation, request in (
            ("GetTaskPushNotificationConfig", GetPushConfigRequest(task_id="t", id="c")),
            ("DeleteTaskPushNotificationConfig", DeletePushConfigRequest(task_id="t", id="c")),
        ):
            assert form.dialect.decode(operation, named) == request

    @rows("form", RESOURCES, ids=str)
    @rows("name", ["c", "tasks/t", "tasks//pushNotificationConfigs/c", "t/c", "/"])
    def test_of_a_webhooks_name_are_no_others(self, form: Form, name: str) -> None:
        with pytest.raises(InvalidParams) as refused:
            form.dialect.decode("GetTaskPushNotificationConfig", {"name": name})
        assert [path for path, _ in refused.value.violations] == ["name"]

    @rows("form", RESOURCES, ids=str)
    @rows("named", [{"name": "tasks/t"}, {"name": "t"}, {"id": "t"}])
    def test_of_a_tasks_name_read_alike(self, form: Form, named: Tree) -> None:
        """§3.3, U14: the text has `id`, the proto `name`; 0.3 over HTTP has it in the path."""
        if form.code == "dr":
            assert form.dialect.decode("GetTask", named) == GetTaskRequest(id="t")

    @rows("form", RESOURCES, ids=str)
    @rows(
        ("said", "path"),
        [
            (
                {
                    "parent": "tasks/t",
                    "configId": "c",
                    "config": {"pushNotificationConfig": WEBHOOK},
                },
                "config.pushNotificationConfig",
            ),
            (
                {"parent": "tasks/t", "config": {"pushNotificationConfig": {**WEBHOOK, "id": "c"}}},
                "config.pushNotificationConfig",
            ),
            ({"parent": "tasks/t", "configId": "c", "config": WEBHOOK}, "config"),
            (
                {"taskId": "t", "pushNotificationConfig": {**WEBHOOK, "id": "c"}},
                "pushNotificationConfig",
            ),
            (
                {"taskId": "t", "configId": "c", "pushNotificationConfig": WEBHOOK},
                "pushNotificationConfig",
            ),
            (
                {"id": "t", "configId": "c", "pushNotificationConfig": WEBHOOK},
                "pushNotificationConfig",
            ),
            ({"taskId": "t", "id": "c", **WEBHOOK}, ""),
            (
                {"taskId": "t", "config": {"name": "tasks/t/pushNotificationConfigs/c", **WEBHOOK}},
                "config",
            ),
        ],
    )
    def test_of_a_webhook_read_alike(self, form: Form, said: Tree, path: str) -> None:
        """§3.3, §3.4: the text's, the proto's and the bare form; where it stood is kept for errors."""
        config = PushConfig(url=WEBHOOK["url"], id="c", task_id="t", dialect=form.code, path=path)
        request = form.dialect.decode("CreateTaskPushNotificationConfig", said)
        assert request == CreatePushConfigRequest(config=config)

    @rows("form", RESOURCES, ids=str)
    @rows(
        ("name", "task", "config"),
        [
            ("tasks/a%2Fb/pushNotificationConfigs/c", "a/b", "c"),
            ("tasks/t/pushNotificationConfigs/a%2Fb", "t", "a/b"),
            ("tasks/50%25/pushNotificationConfigs/%252F", "50%", "%2F"),
            ("tasks/50%/pushNotificationConfigs/%41", "50%", "%41"),
        ],
    )
    def test_of_a_webhooks_name_are_undone(
        self, form: Form, name: str, task: str, config: str
    ) -> None:
        """An id may have what a name of a resource may not; nothing else is encoded in one."""
        request = form.dialect.decode("GetTaskPushNotificationConfig", {"name": name})
        assert request == GetPushConfigRequest(task_id=task, id=config)

    @rows("form", RESOURCES, ids=str)
    @rows("name", ["taskId", "parent", "configId", "config", "name"])
    def test_of_absence_in_a_bare_webhook_read_alike(self, form: Form, name: str) -> None:
        said: Tree = {"id": "t", **WEBHOOK}
        operation = "CreateTaskPushNotificationConfig"
        plainly = form.dialect.decode(operation, said)
        assert form.dialect.decode(operation, {**said, name: None}) == plainly

    @rows("form", [f for f in LISTING if f.code != "v10"], ids=str)
    @rows("said", [1500, "1500", 1500.0])
    def test_of_milliseconds_read_alike(self, form: Form, said: Any) -> None:
        """U15, U19: ProtoJSON has 64-bit integers as strings, numbers are read too."""
        request = form.dialect.decode("ListTasks", {"lastUpdatedAfter": said})
        assert request == ListTasksRequest(status_timestamp_after="1970-01-01T00:00:01.500Z")

    @given(says.messages)
    @laws(6)
    @held_in([f for f in FORMS if f.content == "content"])
    def test_of_the_text_of_0_3_over_http_read_alike(self, form: Form, message: Message) -> None:
        """§3.4: the text shows `kind` objects, the peers send ProtoJSON; both are read."""
        message = replace(message, reference_task_ids=())
        (kinds,) = [form for form in FORMS if form.name == "v03"]
        said = says.spelled_message(kinds, plain(message))
        usual = sent(form, {"message": says.spelled_message(form, plain(message))})
        alike(form, sent(form, {"message": said}), usual)


def _spellings(content: bytes) -> list[str]:
    standard, safe = says.encoded(content), base64.urlsafe_b64encode(content).decode()
    return [standard, safe, standard.rstrip("="), safe.rstrip("=")]


def ambiguous(content: bytes) -> bool:
    """Are these bytes themselves base64 text, so that nobody can tell how often they were encoded?"""
    try:
        return (
            bool(content) and base64.b64encode(base64.b64decode(content, validate=True)) == content
        )
    except ValueError:
        return False


def file_sent(form: Form, text: str) -> Message:
    """A message with a file, its bytes spelled so."""
    if form.newest:
        part: Tree = {"raw": text}
    else:
        tag = {form.tag: "file"} if form.tag else {}
        part = {**tag, "file": {form.file[0]: text}}
    said = {"messageId": "m", "role": says.spelled_role(form, "ROLE_USER"), form.content: [part]}
    return sent(form, _asking(form, said)).message


contents = st.binary(max_size=12) | st.binary(max_size=9).map(base64.b64encode)


class TestBase64:
    """Law 7: bytes are the same in every spelling that can be told apart."""

    @given(contents)
    @laws(4)
    @example(b"\xfb\xff\xfe")
    @example(b"AAAA")
    @example(b"QR==")  # reads like base64, but nobody writes it so
    @example(b"")
    @held_in(FORMS)
    def test_in_every_spelling_reads_alike(self, form: Form, content: bytes) -> None:
        if form.doubled and ambiguous(content):
            return
        for text in _spellings(content):
            assert file_sent(form, text).parts == (Part(raw=says.encoded(content)),)

    @given(contents)
    @laws(2)
    @example(b"AAAA")
    @example(b"")
    @held_in([form for form in FORMS if form.doubled])
    def test_of_base64_is_read_twice(self, form: Form, content: bytes) -> None:
        """§3.4: what released peers of 0.3 send."""
        for text in _spellings(base64.b64encode(content)):
            assert file_sent(form, text).parts == (Part(raw=says.encoded(content)),)

    @given(st.binary(min_size=1, max_size=9).map(base64.b64encode))
    @laws(6)
    @held_in([form for form in FORMS if form.doubled])
    def test_that_may_be_doubled_or_not_is_held_to_be_doubled(
        self, form: Form, content: bytes
    ) -> None:
        """§3.4: decoded again if the result is itself canonical base64."""
        assert file_sent(form, says.encoded(content)).parts == (Part(raw=content.decode()),)

    @every_form
    @rows("text", ["A", "A A=", "AA\n==", "é", "A===A", "AA=A", "*"])
    def test_that_is_none_is_refused_where_it_stands(self, form: Form, text: str) -> None:
        with pytest.raises(InvalidParams) as refused:
            file_sent(form, text)
        ((path, _),) = refused.value.violations
        file = "raw" if form.newest else f"file.{form.file[0]}"
        assert path == f"message.{form.content}[0].{file}"
