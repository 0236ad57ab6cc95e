"""Who acts, and what a request may be called."""

from __future__ import annotations

import asyncio
import threading

import pytest

from a2a_tasks.audit import act_as, actor, request_id_of, staff, system
from a2a_tasks.audit.actor import request_id
from a2a_tasks.store.batched_call import BatchedCall
from a2a_tasks.store.db import run_in_thread
from tests.support.rows import rows


def test_it_is_the_host_unless_somebody_says_so() -> None:
    assert (actor(), request_id()) == ("system:host", "")
    with act_as(lambda: staff(7), "r-1"):
        assert (actor(), request_id()) == ("staff:7", "r-1")
        with act_as(lambda: "system:retention"):
            assert (actor(), request_id()) == ("system:retention", "")
    assert actor() == "system:host"


def test_a_command_is_given_by_a_user_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ops")
    assert system("purge") == "system:purge@ops"

    def nobody() -> str:
        raise OSError

    monkeypatch.setattr("getpass.getuser", nobody)
    assert system("purge") == "system:purge"


@rows(
    ("header", "kept"),
    [
        ("4bf92f35-77b3", "4bf92f35-77b3"),
        ("", ""),
        ("a b", ""),
        ("x" * 65, ""),
        ("a\nb", ""),
        ("<script>", ""),
    ],
)
def test_a_request_is_named_by_plain_words_only(header: str, kept: str) -> None:
    assert request_id_of(header) == kept


@pytest.mark.django_db(transaction=True)
async def test_it_goes_with_the_work_into_the_stores_threads() -> None:
    with act_as(lambda: f"in {threading.current_thread().name[:5]}"):
        assert await run_in_thread(actor) == "in store"


async def test_a_flush_is_nobodys_in_particular() -> None:
    """Whoever comes first does not act for those who come with it."""
    release = asyncio.Event()

    async def run(work: object, items: list[int]) -> list[str]:
        await release.wait()
        return [actor() for _ in items]

    group: BatchedCall[int, str] = BatchedCall(lambda items: [], run=run)

    async def ask(who: str) -> str:
        with act_as(lambda: who):
            return await group(1)

    asked = [asyncio.create_task(ask(who)) for who in ("alice", "bob")]
    await asyncio.sleep(0)
    release.set()
    assert await asyncio.gather(*asked) == ["system:host"] * 2
