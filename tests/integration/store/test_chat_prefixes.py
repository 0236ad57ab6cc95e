"""Conversations that are known by their history: who finds them, and that only one message continues each."""

from __future__ import annotations

import datetime

import pytest
from django.db import connection
from django.utils import timezone

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import ChatPrefix, Task
from a2a_tasks.protocol.chats import ChatPlace, ChatState, digest
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept, accept_many
from a2a_tasks.store.chat_prefixes import find_chats, move_chats
from a2a_tasks.store.records import Accepted, FoundChat, PlaceTaken, RunEnd
from a2a_tasks.store.replies import reply
from tests.support.store.reading import count_rows
from tests.support.store.world import ALICE, BOB, Pen, claim, new

pytestmark = pytest.mark.django_db


def begun(asked: str = "a", task: str = "t1", row: int = 0, before: str = "") -> int:
    """A message at this place; the key of its conversation."""
    place = ChatPlace(asked=asked, row=row, before=before)
    accept(new(id=task, place=place))
    return ChatPrefix.objects.latest("pk").pk


def found(*digests: str, scope: OwnerScope = ALICE) -> list[FoundChat]:
    return find_chats([(scope, digests)])[0]


def test_a_conversation_is_found_by_its_digest_with_its_last_task() -> None:
    row = begun()
    (chat,) = found("a", "b")
    task = Task.objects.get()
    assert (chat.row, chat.digest, chat.task_id, chat.number, chat.recent) == (
        row,
        "a",
        "t1",
        1,
        True,
    )
    assert chat.context_id == task.context.public_id


def test_nobody_else_finds_it() -> None:
    begun()
    assert found("a", scope=BOB) == []


def test_many_are_found_at_once() -> None:
    begun("a")
    begun("b", "t2")
    one, two, none = find_chats([(ALICE, ["a"]), (ALICE, ["b", "a"]), (BOB, ["a"])])
    assert [chat.digest for chat in one] == ["a"]
    assert [chat.digest for chat in two] == ["b", "a"]
    assert none == []


def test_of_many_that_begin_alike_the_newest_one_is_found() -> None:
    for number in range(3):
        begun("a", f"t{number}")
    newest = begun("a", "t3")
    assert [chat.row for chat in found("a")] == [newest]
    begun("b", "t4", row=newest, before="a")
    assert [chat.task_id for chat in found("a", "b")] == ["t2", "t4"]


@pytest.mark.backend("stack")
def test_of_many_that_begin_alike_one_is_read() -> None:
    begun("a")
    about = {"digest": "a", "task": Task.objects.get(), "number": 1}
    moments = [timezone.now() - datetime.timedelta(seconds=n) for n in range(1, 2000)]
    ChatPrefix.objects.bulk_create(ChatPrefix(**about, updated_at=moment) for moment in moments)
    with connection.cursor() as cursor:
        cursor.execute("analyze a2a_tasks_chatprefix")
    before = count_rows()
    assert len(found("a", "b", "c")) == 1
    assert count_rows() - before < 100


def test_one_message_continues_it_and_the_next_is_told_that_it_is_taken() -> None:
    row = begun("a")
    begun("b", "t2", row=row, before="a")
    assert [chat.task_id for chat in found("b")] == ["t2"]
    with pytest.raises(PlaceTaken):
        begun("c", "t3", row=row, before="a")
    assert not Task.objects.filter(public_id="t3").exists()


def test_the_second_of_two_messages_that_continue_it_at_once_begins_nothing() -> None:
    place = ChatPlace(asked="b", row=begun("a"), before="a")
    news = [new("t2", place=place), new("t3", place=place), new("t4", place=ChatPlace(asked="c"))]
    first, second, other = accept_many(news)
    assert (type(first), type(second), type(other)) == (Accepted, PlaceTaken, Accepted)
    assert [chat.task_id for chat in found("b", "c")] == ["t2", "t4"]
    assert not Task.objects.filter(public_id="t3").exists()


def test_of_many_with_the_same_words_the_newest_is_found() -> None:
    for number in range(5):
        begun("a", f"t{number}")
    assert [chat.task_id for chat in found("a")] == ["t4"]


def test_an_answer_to_a_question_keeps_its_place_and_the_number_of_its_event() -> None:
    row = begun("a", "t1")
    Pen(claim()[0]).state(TaskState.INPUT_REQUIRED, end=RunEnd())
    reply(new("t1", place=ChatPlace(asked="b", row=row, before="a")))
    (chat,) = found("b")
    assert (chat.row, chat.number) == (row, Task.objects.get().last_event)
    with pytest.raises(PlaceTaken):
        reply(new("t1", place=ChatPlace(asked="c", row=row, before="a")))


def test_it_moves_on_with_its_answer() -> None:
    begun("a")
    move_chats([("t1", "a", "z"), ("t1", "unknown", "y")])
    assert found("a") == []
    assert [chat.digest for chat in found("z", "y")] == ["z"]


def test_it_is_removed_with_its_task() -> None:
    begun()
    Task.objects.all().delete()
    assert not ChatPrefix.objects.exists()


def test_a_digest_is_of_the_caller_the_words_and_their_fate() -> None:
    whose, history = ["tenant", "key:1", "demo", ""], [["user", "a"], ["assistant", "b"]]
    known = digest(whose, history, ChatState.ASKED)
    others = [
        digest(["tenant", "key:2", "demo", ""], history, ChatState.ASKED),
        digest(whose, [["user", "ab"]], ChatState.ASKED),
        digest(whose, [["user", "a"], ["assistant", "b "]], ChatState.ASKED),
        digest(whose, history, ChatState.ANSWERED),
    ]
    assert len({known, *others}) == 5
    assert known == digest(tuple(whose), [tuple(entry) for entry in history], ChatState.ASKED)
