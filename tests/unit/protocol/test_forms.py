"""Forms of questions: which schemas can be one, and which answers fit."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.agents.emission import data, file, text
from a2a_tasks.protocol.forms import MAX_BYTES, UnfitAnswer, find_fault, read_answer
from a2a_tasks.protocol.schemas import MAX_MATCHED
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
        (one(**{"$ref": "https://example.com/schema"}), "properties.x.$ref: must be # or begin"),
        (one(**{"$ref": "#/nowhere"}), "PointerToNowhere"),
        (one(**{"$ref": "#/required"}), "object has no attribute"),
        (one(**{"$ref": "#/properties/x"}), "maximum recursion"),
        (one(pattern="("), "properties.x.pattern: '(' is no pattern of RE2: missing )"),
        (one(unevaluatedProperties=False), "properties.x.unevaluatedProperties: a form cannot"),
        (one(**{"$anchor": "here"}), "properties.x.$anchor: a form cannot have this keyword"),
        (one(**{"$id": "https://example.com/"}), "properties.x.$id: a form cannot have this"),
        (one(**{"$schema": "http://json-schema.org/draft-07/schema#"}), ""),
        ({"type": "object", "properties": {"$id": {"type": "string"}, "$anchor": {}}}, ""),
        (one(enum=[{"pattern": "(?=a)", "$anchor": 1}]), ""),
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


#: What the engine of `re` can match, and none that is linear.
WITHOUT_LIMIT = {
    "back reference": r"(a|b)\1",
    "named back reference": r"(?P<x>a)(?P=x)",
    "lookahead": "(?=a)b",
    "negative lookahead": "^(?!admin).*$",
    "lookbehind": "(?<=a)b",
    "possessive": "a++",
    "conditional": "(a)?(?(1)b|c)",
    "too large": r"(?:\p{L}{1,500}\p{N}{1,500}){2}",
    "many repetitions": "a{1,1001}",
}


@rows(("kind", "pattern"), WITHOUT_LIMIT.items())
def test_a_pattern_that_is_not_matched_in_linear_time_is_refused_with_its_field(
    kind: str, pattern: str
) -> None:
    for form, keyword in [
        (one(pattern=pattern), "pattern"),
        (one(items={"anyOf": [{"pattern": pattern}]}), "items.anyOf.0.pattern"),
        (one(patternProperties={pattern: {}}), "patternProperties"),
    ]:
        assert find_fault(form).startswith(f"properties.x.{keyword}: "), kind
        assert "is no pattern of RE2" in find_fault(form), kind
        # Such as those that were asked before this host knew RE2.
        with pytest.raises(UnfitAnswer, match="cannot be checked"):
            read_answer(form, [data({"x": ["a"]} if "items" in keyword else {"x": {"a": 1}})])
            read_answer(form, [data({"x": "a"})])


@rows(
    ("pattern", "value", "fits"),
    [
        ("b", "abc", True),  # found anywhere
        ("^b", "abc", False),
        ("^b", "a\nb", False),  # of the whole text, not of a line
        ("a$", "a\n", False),  # Python's `$` would take the line break
        (r"^\d+$", "12", True),
        (r"^\d+$", "\u0661\u0662", False),  # digits are those of ASCII, as in ECMA-262
        (r"^\w+$", "caf\u00e9", False),
        (r"^\p{L}+$", "caf\u00e9", True),
        ("^.$", "\U0001f600", True),  # a character, not half of one
        (r"^\/$", "/", True),
        (r"^(?<year>\d{4})$", "2026", True),
        ("(?i)^yes$", "YES", True),
        ("^(?:a|a)*$", "a" * 4096, True),
    ],
)
def test_a_pattern_means_what_it_means_in_ecma_262(pattern: str, value: str, fits: bool) -> None:
    form = one(pattern=pattern)
    assert find_fault(form) == ""
    if fits:
        assert read_answer(form, [data({"x": value})]) == {"x": value}
    else:
        with pytest.raises(UnfitAnswer, match="does not match"):
            read_answer(form, [data({"x": value})])


def test_a_text_with_a_pattern_is_bounded() -> None:
    assert read_answer(one(pattern="a"), [data({"x": "a" * MAX_MATCHED})])
    with pytest.raises(UnfitAnswer, match="x has more than 4096 characters"):
        read_answer(one(pattern="a"), [data({"x": "a" * (MAX_MATCHED + 1)})])
    with pytest.raises(UnfitAnswer, match="x has a name of more than 4096 characters"):
        read_answer(one(patternProperties={"a": {}}), [data({"x": {"a" * 5000: 1}})])


def test_members_are_found_by_the_patterns_of_their_names() -> None:
    form = one(
        patternProperties={"^n": {"type": "integer"}, "^t": {"type": "string"}},
        additionalProperties=False,
    )
    answer = {"x": {"n1": 1, "t1": "a"}}
    assert read_answer(form, [data(answer)]) == answer
    for wrong, told in [
        ({"n1": "a"}, "x.n1 'a' is not of type 'integer'"),
        ({"other": 1}, "x has no property 'other'"),
    ]:
        with pytest.raises(UnfitAnswer, match=told):
            read_answer(form, [data({"x": wrong})])
    others = one(patternProperties={"^n": {}}, additionalProperties={"type": "string"})
    with pytest.raises(UnfitAnswer, match=r"x\.other 1 is not of type 'string'"):
        read_answer(others, [data({"x": {"n": 1, "other": 1}})])


def doubling(levels: int, **first: Any) -> dict[str, Any]:
    """A form whose levels refer twice to the next one each."""
    refs = [{"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(levels)]
    named = {str(n): ref for n, ref in enumerate(refs)} | {str(levels): {}}
    return one(**first or {"$ref": "#/$defs/0"}) | {"$defs": named}


@rows(
    "schema",
    [
        doubling(30),
        one(allOf=[{}] * 10_000),
        {"type": "object", "properties": {f"p{n}": {} for n in range(6000)}},
        one(patternProperties={f"a{n}": {} for n in range(3000)}),
    ],
)
def test_a_schema_that_takes_too_long_to_check_is_refused(schema: Any) -> None:
    assert find_fault(schema) == "the check takes too many steps"


FEW = {f"p{n}": {"type": "string", "title": "A", "maxLength": 9} for n in range(200)}


@rows("schema", [doubling(5), {"type": "object", "properties": FEW}])
def test_a_schema_of_a_usual_size_is_checked(schema: Any) -> None:
    assert find_fault(schema) == ""


@rows(
    ("form", "value"),
    [
        (doubling(30, **{"if": {"type": "integer"}, "then": {"$ref": "#/$defs/0"}}), 5),
        (one(items={"type": "integer", "minimum": 0}), [7] * 99_000),
        (one(items={"enum": [f"{n}" for n in range(5000)]}), ["4999"] * 99_000),
        (one(anyOf=[{"type": "null"}] * 300), "a" * 1_000_000),
        (one(anyOf=[{"const": n} for n in range(300)]), [0] * 99_000),
        (
            one(patternProperties={f"^a{n}": {} for n in range(40)}),
            {f"b{n}": 1 for n in range(30_000)},
        ),
        (one(items={"multipleOf": 1e-300}), [1e300] * 99_000),
        (one(contains={"allOf": [{"const": n} for n in range(30)]}), [0] * 99_000),
    ],
)
def test_an_answer_that_takes_too_long_to_check_is_refused(form: Any, value: Any) -> None:
    assert find_fault(form) == ""
    with pytest.raises(UnfitAnswer, match="cannot be checked: the check takes too many steps"):
        read_answer(form, [data({"x": value})])


def test_a_schema_below_cannot_choose_another_engine() -> None:
    """With `$schema`, jsonschema would take the functions of that generation, with Python's `re`."""
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    form = one(**named, pattern=r"^\p{L}$", properties={"y": {"$ref": "#"}}) | named
    assert find_fault(form) == ""
    assert read_answer(form, [data({"x": "\u00e9"})])
    with pytest.raises(UnfitAnswer, match=r"x\.y\.x '1' does not match"):
        read_answer(form, [data({"x": {"y": {"x": "1"}}})])


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
