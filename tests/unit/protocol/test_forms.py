"""Forms of questions: which schemas can be one, and which answers fit."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.agents.content import data, file, text
from a2a_tasks.protocol.forms import MAX_BYTES, UnfitAnswer, find_fault, read_answer
from a2a_tasks.protocol.values import Part
from tests.support.rows import rows

TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "enum": ["Rome", "Oslo"]},
        "people": {"type": "integer", "minimum": 1},
    },
    "required": ["to", "people"],
}


def one(**schema: Any) -> dict[str, Any]:
    """A form with one property."""
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


@rows(
    ("schema", "fault"),
    [
        (TRIP, ""),
        ({"type": "object", "$defs": {"a": {}}, "properties": {"x": {"$ref": "#/$defs/a"}}}, ""),
        (one(type="nothing"), "properties.x.type: 'nothing' is not valid"),
        (True, "its type must be"),
        ({"type": "string"}, "its type must be"),
        ({"type": ["object", "null"], "properties": {"x": {}}}, "its type must be"),
        ({"type": "object"}, "it needs properties"),
        ({"type": "object", "properties": {"x": True}}, "it needs properties"),
        (one(description="x" * MAX_BYTES), "it has 65"),
        (one(default={1}), "form['properties']['x']['default'] cannot be stored as JSON"),
        (one(**{"$ref": "https://example.com/schema"}), "Unresolvable"),
        (one(**{"$ref": "#/properties/x"}), "maximum recursion"),
        (one(pattern="("), "'(' is not a 'regex'"),
    ],
)
def test_a_schema_that_cannot_be_a_form_is_told(schema: Any, fault: str) -> None:
    found = find_fault(schema)
    assert fault in found
    assert bool(found) == bool(fault)


@rows(
    ("schema", "said", "answer"),
    [
        ({"type": "string"}, " blue ", "blue"),
        ({}, "blue", "blue"),
        ({}, "5", "5"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, " 5", 5),
        ({"enum": [1, 2, None]}, "null", None),
        ({"type": "boolean"}, "Yes, please", True),
        ({"type": ["boolean", "object"]}, "no", False),
        ({"type": "integer"}, "-7", -7),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "number", "multipleOf": 0.01}, "19.99", 19.99),
        ({"type": "integer", "multipleOf": 0.5}, "9" * 400, int("9" * 400)),
    ],
)
def test_a_text_answers_the_only_question(schema: Any, said: str, answer: Any) -> None:
    assert read_answer(one(**schema), [text(said)]) == {"x": answer}


def test_many_items_are_compared_at_once() -> None:
    """Each with all others, they would take minutes of the process that accepts the answer."""
    form = one(type="array", uniqueItems=True)
    items: list[Any] = [{"n": number} for number in range(50_000)]
    assert read_answer(form, [data({"x": items})])["x"] == items
    with pytest.raises(UnfitAnswer, match="x has items that are equal"):
        read_answer(form, [data({"x": [*items, {"n": 7}]})])


def test_the_first_data_part_is_the_answer() -> None:
    answer = {"to": "Rome", "people": 2}
    assert read_answer(TRIP, [text("Here:"), data(answer), data(1)]) == answer


@rows(
    ("form", "parts", "path", "fault"),
    [
        (TRIP, (data({"to": "Bern", "people": 2}),), ".parts[0].data.to", "'Bern' is not one of"),
        (TRIP, (text("a"), data({"to": "Rome"})), ".parts[1].data.people", "is missing"),
        (TRIP, (data([1]),), ".parts[0].data", "[1] is not of type 'object'"),
        (TRIP, (text("Rome"),), ".parts", "must have a data part with to, people"),
        (one(type="boolean"), (text("perhaps"),), ".parts", "must be yes or no, for x"),
        (one(type="boolean"), (text(" "),), ".parts", "must be yes or no, for x"),
        (one(type="number"), (text("nan"),), ".parts", "must be a number, for x"),
        (one(type="integer"), (text("1.5"),), ".parts.x", "1.5 is not of type 'integer'"),
        (one(type="string", maxLength=2), (text("abc"),), ".parts.x", "'abc' is too long"),
        (one(type="array"), (text("abc"),), ".parts", "must have a data part with x"),
        (one(enum=[1, 2]), (text("blue"),), ".parts.x", "'blue' is not one of [1, 2]"),
        (one(enum=[1, 2]), (text("[" * 9000),), ".parts.x", "'[[["),
        (TRIP, (file(b"x", "x", "text/plain"),), ".parts", "must have a data part"),
    ],
)
def test_what_does_not_fit_is_told_with_its_field(
    form: Any, parts: tuple[Part, ...], path: str, fault: str
) -> None:
    with pytest.raises(UnfitAnswer) as unfit:
        read_answer(form, parts)
    ((where, why),) = unfit.value.faults
    assert where == f"message{path}"
    assert why.startswith(fault)
