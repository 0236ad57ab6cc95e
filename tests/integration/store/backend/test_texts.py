"""Texts of strangers go to PostgreSQL as they are: to quote them in Python takes a microsecond for each quote of JSON."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.array import ListDumper

from a2a_tasks.protocol.jsontext import write
from a2a_tasks.store import runs, steps
from a2a_tasks.store.append import append
from a2a_tasks.store.records import StepResult
from tests.integration.store.test_conversations import end, put
from tests.support.store.world import Pen, everything, expire, held

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]

ODD = '"\\\0{},\n" NULL ä\u2028'
JSON = write(ODD).decode()


@pytest.fixture(autouse=True)
def quoted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The texts that psycopg has quoted in arrays."""
    texts: list[Any] = []
    quote = ListDumper.dump

    def dump(dumper: ListDumper, values: list[Any]) -> Any:
        texts.extend(value for value in values if isinstance(value, str | bytes))
        return quote(dumper, values)

    monkeypatch.setattr(ListDumper, "dump", dump)
    return texts


def test_no_message_event_artifact_step_or_memory_is_quoted(quoted: list[Any]) -> None:
    run = held(text=ODD)
    pen = Pen(run)
    pen.begin("a", ODD)
    pen.add("a", ODD)
    steps.keep(StepResult(run, "pay", JSON))
    append(end(run, put("k", ODD)))
    assert quoted == []
    assert steps.read_results(run.task, run.input_number) == {"pay": JSON}
    told = [event.body for event in everything(run.task) if JSON in event.body]
    assert len(told) == 3


def test_nothing_is_quoted_when_a_run_begins_again(quoted: list[Any]) -> None:
    expire(held(text=ODD).key)
    runs.reclaim_expired(max_attempts=9)
    assert quoted == []
