"""What other apps keep beside a task comes with its message, or neither is there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a_push.models import PushConfig
from a2a_push.store import configs
from a2a_tasks.models import Context, Task
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Role
from a2a_tasks.store import hooks
from a2a_tasks.store.accept import accept, accept_many
from a2a_tasks.store.records import Accepted
from a2a_tasks.store.replies import reply
from tests.support.push.configs import config, ids
from tests.support.store.world import ALICE, BOB, accepted, contents, new

pytestmark = pytest.mark.django_db


def beside(task: str = "task-1", name: str = "c-1") -> Callable[[int], None]:
    """A webhook to be written with a task."""
    return partial(configs.put, config=config(name, task_id=task))


def fails(task: int) -> None:
    """A companion that cannot be written."""
    raise InvalidParams.field("x", "is refused")


class TestANewTask:
    def test_is_there_with_its_companions(self) -> None:
        result = accept(new(companions=(beside(), beside(name="c-2"))))
        assert ids() == ["c-1", "c-2"]
        assert PushConfig.objects.first().task_id == result.task  # type: ignore[union-attr]

    def test_is_not_there_if_one_of_them_is_refused(self) -> None:
        with pytest.raises(InvalidParams):
            accept(new(companions=(beside(), fails)))
        assert not Task.objects.exists()
        assert not Context.objects.exists()
        assert not PushConfig.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_is_written_with_others_in_one_go(self) -> None:
        """Each with its own, whatever the order, and one that is refused hinders nobody."""
        news = [
            new("task-0"),
            new("task-1", companions=(beside("task-1"),)),
            new("task-2", companions=(fails,)),
            new("task-3", companions=(beside("task-3"),)),
            new("task-0", text="again"),
        ]
        results = accept_many(news)
        assert [isinstance(result, Accepted) for result in results] == [
            True,
            True,
            False,
            True,
            False,
        ]
        assert [ids(f"task-{n}") for n in (0, 1, 3)] == [[], ["c-1"], ["c-1"]]
        with pytest.raises(TaskNotFound):
            ids("task-2")

    @pytest.mark.backend("stack")
    def test_without_any_is_one_statement_and_no_transaction_around_it(self) -> None:
        """The hot path; what `fetch` sends goes past Django's cursor, so BEGIN would be all there is to see."""
        accepted("task-0")
        with CaptureQueriesContext(connection) as seen:
            accept_many([new("task-1"), new("task-2")])
        assert list(seen) == []


class TestAMessageToATask:
    def test_comes_with_its_companions(self) -> None:
        accepted()
        reply(new(text="and?", companions=(beside(),)))
        assert ids() == ["c-1"]

    def test_replaces_a_webhook_of_the_same_id(self) -> None:
        accept(new(companions=(beside(),)))
        other = config(url="https://b.example")
        reply(new(text="and?", companions=(partial(configs.put, config=other),)))
        assert configs.get(ALICE, "task-1", "c-1").url == "https://b.example"

    def test_is_not_written_if_one_of_them_is_refused(self) -> None:
        accepted()
        before = contents(ALICE.owner)
        with pytest.raises(InvalidParams):
            reply(new(text="and?", companions=(beside(), fails)))
        assert contents(ALICE.owner) == before
        assert ids() == []

    def test_of_somebody_else_brings_nothing(self) -> None:
        accepted()
        with pytest.raises(TaskNotFound):
            reply(new(text="and?", scope=BOB, companions=(beside(),)))
        assert ids() == []


class TestTheHooks:
    def request(self, **members: object) -> SendMessageRequest:
        """A message."""
        message = Message(message_id="m", role=Role.USER, parts=())
        return SendMessageRequest(message=message, **members)  # type: ignore[arg-type]

    def test_knows_the_webhooks_of_messages(self) -> None:
        assert hooks.companions(self.request(), "task-1", "v10") == ()
        (made,) = hooks.companions(self.request(push_config=config(task_id="")), "task-1", "v10")
        made(accepted().task)
        assert ids() == ["c-1"]

    def test_takes_webhooks_to_a_successor(self) -> None:
        old, fresh = accepted("old").task, accepted("new").task
        configs.create(ALICE, config(task_id="old"))
        hooks.succeed(old, fresh)
        assert (ids("old"), ids("new")) == ([], ["c-1"])
