"""Tasks as rows of a sheet: what no program takes for a formula, and no line breaks."""

from __future__ import annotations

import csv
import io
import json

import pytest

from a2a_console.search import selection
from a2a_console.search.selection import Selection
from a2a_console.search.task_record import COLUMNS, csv_text, json_text, keys_of, records, whole
from a2a_tasks.models import Message, Task
from tests.support.console.admin.rows import make_task
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@rows("evil", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r1", "\n1", "＝1"], within=rolled_back)
def test_no_cell_begins_as_a_formula_does(evil: str) -> None:
    task = make_task(evil, owner=evil)
    Message.objects.filter(task=task).update(opening=evil)
    heading, cells = rows_of(csv_text(records([task]), heading=True))
    assert tuple(heading) == COLUMNS
    said = dict(zip(heading, cells, strict=True))
    assert [said["id"], said["owner"], said["opening"]] == [f"'{evil}"] * 3


@rows("between", [";", "\n", "\r"], ids=repr, within=rolled_back)
def test_nor_does_one_where_a_sheet_separates_by_semicolons(between: str) -> None:
    """As those of half the world do: to them a comma, and the quotes after it, are text."""
    task = make_task(f"pay{between}=1+1 and 2{between} 3 - 4")
    said = rows_of(csv_text(records([task])))[0][1]
    assert said == f"pay{between}'=1+1 and 2{between} 3 - 4"


def test_what_strangers_wrote_stays_in_its_cell_and_its_line() -> None:
    evil = 'a,"b"\nc\x85d\u2028e\u2029f'
    task = make_task(evil)
    assert rows_of(csv_text(records([task])))[0][1] == evil
    (line,) = json_text(records([task])).splitlines()
    assert json.loads(line)["id"] == evil


@pytest.mark.django_db(
    transaction=True, reset_sequences=True
)  # it reads windows of keys, from the last one to 1
def test_all_that_are_meant_are_on_it_however_many_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "SLICE", 2)
    monkeypatch.setattr(selection, "WINDOW", 3)
    names = [make_task(f"t-{n}", owner="ab"[n % 2]).public_id for n in range(15)]
    told = [record["id"] for some in whole(Selection(owner="a")) for record in some]
    assert told == names[::-2]
    assert list(keys_of(Selection())) == list(
        Task.objects.order_by("-pk").values_list("pk", flat=True)
    )
