"""Reading one object of a request by the rules of ProtoJSON."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.fields import Fields, camel, canonical_base64, parse_rfc3339, rfc3339
from tests.support.rows import rows

UTC = datetime.UTC


def fields(**members: Any) -> Fields:
    """An object of a request."""
    return Fields(members)


def violated(read: Callable[[Fields], object], **members: Any) -> list[str]:
    """The paths noted after reading."""
    found = fields(**members)
    read(found)
    return [path for path, _ in found.violations]


class TestAName:
    @rows(
        ("snake", "camelled"),
        [("id", "id"), ("page_size", "pageSize"), ("reference_task_ids", "referenceTaskIds")],
    )
    def test_becomes_camel_case(self, snake: str, camelled: str) -> None:
        assert camel(snake) == camelled

    def test_is_read_in_both_spellings(self) -> None:
        assert fields(pageSize=1).integer("page_size") == 1
        assert fields(page_size=1).integer("page_size") == 1

    def test_prefers_camel_case(self) -> None:
        assert fields(pageSize=1, page_size=2).integer("page_size") == 1

    def test_is_told_in_camel_case_with_its_path(self) -> None:
        outer = fields(message={"task_id": 7})
        inner = outer.object("message")
        assert inner is not None
        inner.string("task_id")
        with pytest.raises(InvalidParams) as caught:
            outer.check()
        assert caught.value.violations == (("message.taskId", "must be a string"),)


class TestNull:
    @rows(
        "read",
        [
            lambda f: f.string("x"),
            lambda f: f.integer("x"),
            lambda f: f.length("x"),
            lambda f: f.boolean("x"),
            lambda f: f.struct("x"),
            lambda f: f.timestamp("x"),
            lambda f: f.object("x"),
        ],
    )
    def test_is_absence(self, read: Callable[[Fields], object]) -> None:
        found = fields(x=None)
        assert read(found) is None
        found.check()

    def test_is_an_empty_list(self) -> None:
        assert fields(x=None).strings("x") == ()
        assert list(fields(x=None).objects("x")) == []

    def test_is_not_enough_where_something_is_required(self) -> None:
        assert violated(lambda f: f.string("x", required=True), x=None) == ["x"]
        assert violated(lambda f: f.object("x", required=True), x=None) == ["x"]

    def test_is_there_all_the_same_for_those_who_ask(self) -> None:
        assert fields(someName=None).has("some_name")
        assert not fields().has("some_name")


class TestAString:
    def test_is_taken_as_it_is(self) -> None:
        assert fields(x=" a\x00é ").string("x") == " a\x00é "

    @rows("value", [1, 1.5, True, [], ["a"], {}, {"a": 1}])
    def test_is_nothing_else(self, value: object) -> None:
        assert violated(lambda f: f.string("x"), x=value) == ["x"]

    def test_may_be_as_long_as_allowed(self) -> None:
        assert fields(x="a" * 5).string("x", longest=5) == "aaaaa"
        assert violated(lambda f: f.string("x", longest=5), x="a" * 6) == ["x"]

    @rows("members", [{}, {"x": ""}])
    def test_is_missed_where_it_is_required(self, members: dict[str, Any]) -> None:
        assert violated(lambda f: f.string("x", required=True), **members) == ["x"]


class TestAnInteger:
    @rows(
        ("value", "number"),
        [
            (0, 0),
            ("0", 0),
            ("-7", -7),
            (7.0, 7),
            (-0.0, 0),
            (2**31 - 1, 2**31 - 1),
            (-(2**31), -(2**31)),
            ("2147483647", 2**31 - 1),
        ],
    )
    def test_is_a_number_without_fraction_or_its_string(self, value: object, number: int) -> None:
        assert fields(x=value).integer("x") == number

    @rows(
        "value",
        [
            True,
            1.5,
            2**31,
            -(2**31) - 1,
            "2147483648",
            "1.0",
            "1e3",
            "+1",
            " 1",
            "1 ",
            "",
            "0x1",
            "1_0",
            "٣",
            "9" * 5000,
            1e300,
            [],
            {},
        ],
    )
    def test_is_nothing_else(self, value: object) -> None:
        assert violated(lambda f: f.integer("x"), x=value) == ["x"]

    def test_must_not_be_negative_where_it_counts(self) -> None:
        assert violated(lambda f: f.length("x"), x=-1) == ["x"]
        assert fields(x=0).length("x") == 0


class TestABoolean:
    @rows("value", [True, False])
    def test_is_true_or_false(self, value: bool) -> None:
        assert fields(x=value).boolean("x") is value

    @rows("value", ["true", "", 0, 1, [], {}])
    def test_is_nothing_that_resembles_them(self, value: object) -> None:
        assert violated(lambda f: f.boolean("x"), x=value) == ["x"]


class TestAStruct:
    def test_is_an_object(self) -> None:
        assert fields(x={"a": None}).struct("x") == {"a": None}

    @rows("value", ["", 0, False, [], [["a", 1]]])
    def test_is_nothing_else(self, value: object) -> None:
        assert violated(lambda f: f.struct("x"), x=value) == ["x"]


class TestLists:
    def test_of_strings_are_tuples(self) -> None:
        assert fields(x=["a", ""]).strings("x") == ("a", "")

    @rows("value", ["a", {}, 1, [1], ["a", None], [["a"]]])
    def test_of_strings_hold_nothing_else(self, value: object) -> None:
        assert violated(lambda f: f.strings("x"), x=value) == ["x"]

    @rows("value", ["a", {}, 1, False])
    def test_of_objects_are_lists(self, value: object) -> None:
        assert violated(lambda f: list(f.objects("x")), x=value) == ["x"]

    def test_of_objects_tell_which_item_is_wrong(self) -> None:
        assert violated(lambda f: list(f.objects("x")), x=[{}, 1, {}, None]) == ["x[1]", "x[3]"]

    def test_of_objects_give_each_its_path(self) -> None:
        assert [item.path for item in fields(x=[{}, {}]).objects("x")] == ["x[0]", "x[1]"]


class TestCheck:
    def test_tells_everything_at_once(self) -> None:
        found = fields(a=1, b="x")
        found.string("a")
        found.boolean("b")
        found.string("c", required=True)
        with pytest.raises(InvalidParams) as caught:
            found.check()
        assert [path for path, _ in caught.value.violations] == ["a", "b", "c"]

    def test_is_content_with_nothing_wrong(self) -> None:
        fields(a=1).check()

    @rows("value", [None, 1, "x", []])
    def test_of_what_is_no_object_raises_at_once(self, value: object) -> None:
        with pytest.raises(InvalidParams) as caught:
            Fields.of(value)
        assert caught.value.violations[0][0] == "params"


class TestATimestamp:
    @rows(
        ("text", "kept"),
        [
            ("2026-11-20T12:00:00Z", "2026-11-20T12:00:00.000Z"),
            ("2026-11-20t12:00:00z", "2026-11-20T12:00:00.000Z"),
            ("2026-11-20T12:00:00.5Z", "2026-11-20T12:00:00.500Z"),
            ("2026-11-20T12:00:00.123456789Z", "2026-11-20T12:00:00.123Z"),
            ("2026-11-20T12:00:00.999999Z", "2026-11-20T12:00:00.999Z"),
            ("2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00.000Z"),
            ("2026-11-20T12:00:00.25-05:30", "2026-11-20T17:30:00.250Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
            ("0999-12-31T23:59:59Z", "0999-12-31T23:59:59.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ],
    )
    def test_is_kept_in_utc_with_milliseconds(self, text: str, kept: str) -> None:
        found = fields(x=text)
        assert found.timestamp("x") == kept
        found.check()

    @rows(
        "text",
        [
            "2026-11-20",
            "2026-11-20T12:00:00",
            "2026-11-20 12:00:00Z",
            "2026-11-20T12:00Z",
            "2026-13-20T12:00:00Z",
            "2026-02-30T12:00:00Z",
            "2026-11-20T25:00:00Z",
            "2026-11-20T12:00:61Z",
            "2026-11-20T12:00:00.Z",
            "2026-11-20T12:00:00.1234567890Z",
            "2026-11-20T12:00:00+25:00",
            "2026-11-20T12:00:00+0200",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "0000-01-01T00:00:00Z",
            "٢٠٢٦-11-20T12:00:00Z",
            "yesterday",
            "1700000000",
        ],
    )
    def test_is_nothing_else(self, text: str) -> None:
        assert violated(lambda f: f.timestamp("x"), x=text) == ["x"]

    def test_is_no_number(self) -> None:
        assert violated(lambda f: f.timestamp("x"), x=1700000000) == ["x"]

    @given(st.datetimes(timezones=st.just(UTC)))
    def test_written_is_read_again_to_the_millisecond(self, moment: datetime.datetime) -> None:
        cut = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        assert parse_rfc3339(rfc3339(moment)) == cut


class TestBase64:
    @given(st.binary(max_size=40))
    def test_in_every_spelling_becomes_the_standard_one(self, content: bytes) -> None:
        standard = base64.b64encode(content).decode()
        url_safe = base64.urlsafe_b64encode(content).decode()
        for text in (standard, url_safe, standard.rstrip("="), url_safe.rstrip("=")):
            assert canonical_base64(text) == standard

    def test_loses_bits_that_mean_nothing(self) -> None:
        assert base64.b64decode(canonical_base64("QR==")) == b"A"

    @rows("text", ["A", "AAAAA", "A A=", "AA\n==", "é", "A===A", "A*==", "AA=A", "AA===", "=" * 9])
    def test_is_nothing_else(self, text: str) -> None:
        with pytest.raises(ValueError, match="base64"):
            canonical_base64(text)
