"""The door for JSON: what comes in, what is no JSON, and what is JSON but refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.errors import InvalidParams, ParseError
from a2a_tasks.protocol.jsontext import (
    MAX_ESCAPES,
    MAX_MEMBERS,
    MAX_VALUES,
    NO_ID,
    Flawed,
    read,
    write,
)


def depth(document: Any) -> int:
    """Levels of objects and lists."""
    if isinstance(document, dict):
        return 1 + max(map(depth, document.values()), default=0)
    return 1 + max(map(depth, document), default=0) if isinstance(document, list) else 0


NOT_JSON = {
    "nothing": b"",
    "white space": b" \n",
    "a byte order mark": b'\xef\xbb\xbf{"a":1}',
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "minus Infinity": b'{"a":-Infinity}',
    "a comment": b'{"a":1}// so',
    "single quotes": b"{'a':1}",
    "a trailing comma": b'{"a":1,}',
    "two documents": b"{}{}",
    "trailing text": b"{} x",
    "a truncated object": b'{"a":',
    "a truncated string": b'{"a":"b',
    "a raw line break in a string": b'"a\nb"',
    "a raw NUL in a string": b'"a\x00b"',
    "a NUL after the document": b"{}\x00",
    "an unknown escape": b'"\\x41"',
    "a short escape": b'"\\u12"',
    "an octal number": b"[012]",
    "a bare point": b"[1.]",
    "a plus sign": b"[+1]",
    "hexadecimal": b"[0x10]",
    "Latin-1": '{"a":"é"}'.encode("latin-1"),
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a":1}'.encode("utf-16-le"),
    "an overlong encoding": b'"\xc0\xaf"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "a cut character": b'"\xe2\x82"',
    "compressed bytes": b"\x1f\x8b\x08\x00",
    "Python": b"{'a': None, 'b': True}",
    "a form": b"a=1&b=2",
    "an unmatched bracket": b"]",
}
REFUSED = {
    "a name twice": b'{"a":1,"a":2}',
    "a name twice, deep inside": b'[{"b":{"a":1,"a":1}}]',
    "a name twice, once escaped": b'{"a":1,"\\u0061":2}',
    "a high surrogate alone": b'"\\ud800"',
    "a low surrogate alone": b'"\\udc00"',
    "surrogates in the wrong order": b'"\\udc00\\ud800"',
    "a surrogate in a name": b'{"\\uD83D":1}',
    "1e999": b"[1e999]",
    "-1e999": b"[-1e999]",
    "an integer of 5000 digits": b"[" + b"9" * 5000 + b"]",
    "a negative integer of 5000 digits": b"[-" + b"9" * 5000 + b"]",
    "2**64": b"[18446744073709551616]",
    "-2**63-1": b"[-9223372036854775809]",
    "65 levels": b"[" * 65 + b"]" * 65,
    "65 levels of objects": b'{"a":' * 65 + b"1" + b"}" * 65,
    "100000 levels": b"[" * 100_000 + b"]" * 100_000,
    "100000 levels that never close": b"[" * 100_000,
}
TAKEN: dict[str, tuple[bytes, Any]] = {
    "NUL in a string": (b'"a\\u0000b"', "a\x00b"),
    "a surrogate pair": (b'"\\ud83d\\ude00"', "\U0001f600"),
    "a backslash before u": (b'"\\\\ud800"', "\\ud800"),
    "2**64-1": (b"[18446744073709551615]", [2**64 - 1]),
    "-2**63": (b"[-9223372036854775808]", [-(2**63)]),
    "2**53+1": (b"[9007199254740993]", [9007199254740993]),
    "a large float": (b"[1e308]", [1e308]),
    "a float too small": (b"[1e-999]", [0.0]),
    "64 levels": (b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64)),
    "brackets in a string": (b'"' + b"[{" * 1000 + b'"', "[{" * 1000),
    "brackets behind an escaped quote": (b'"\\"' + b"[" * 100 + b'"', '"' + "[" * 100),
    "a string ending in a backslash": (
        b'["\\\\",' + b"[],[]," * 40 + b"1]",
        ["\\", *[[], []] * 40, 1],
    ),
    "many brackets side by side": (b"[" + b"[]," * 1000 + b"0]", [*[[]] * 1000, 0]),
    "white space around": (b" \r\n\t{} \r\n\t", {}),
    "an empty name": (b'{"":1}', {"": 1}),
    "null": (b"null", None),
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
class TestNotJSON:
    def test_is_a_parse_error(self, body: bytes) -> None:
        with pytest.raises(ParseError):
            read(body)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
class TestRefusedJSON:
    def test_is_invalid_params_and_says_why(self, body: bytes) -> None:
        with pytest.raises(InvalidParams) as caught:
            read(body)
        assert isinstance(caught.value, Flawed)
        ((path, description),) = caught.value.violations
        assert path == ""
        assert description


class TestTakenJSON:
    @pytest.mark.parametrize(("body", "document"), TAKEN.values(), ids=TAKEN.keys())
    def test_is_what_it_says(self, body: bytes, document: Any) -> None:
        assert read(body) == document

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**63), 2**64 - 1)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(st.characters(codec="utf-8")),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=4
                )
            ),
            max_leaves=20,
        )
    )
    def test_survives_writing_and_reading(self, document: Any) -> None:
        assert read(write(document)) == document

    def test_may_be_as_deep_as_the_caller_says(self) -> None:
        assert read(b"[[1]]", max_depth=2) == [[1]]
        with pytest.raises(Flawed):
            read(b"[[[1]]]", max_depth=2)

    @given(
        st.recursive(
            st.text(st.sampled_from('[]{}"\\x')) | st.integers(0, 9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
            max_leaves=12,
        ),
        st.integers(1, 6),
    )
    def test_is_refused_exactly_when_it_is_deeper(self, document: Any, limit: int) -> None:
        body = json.dumps(document).encode()
        if depth(document) <= limit:
            assert read(body, max_depth=limit) == document
        else:
            with pytest.raises(Flawed):
                read(body, max_depth=limit)

    @pytest.mark.parametrize("text", ["[" * 99, '"]' * 99, "[{" * 99 + "\\", ""])
    def test_may_say_as_many_brackets_in_strings_as_it_likes(self, text: str) -> None:
        assert read(write([text])) == [text]

    @pytest.mark.parametrize("body", [b"]" * 99 + b"[" * 99, b"[}" * 99, b"[" * 60 + b"]" * 99])
    def test_that_closes_what_it_has_not_opened_is_none(self, body: bytes) -> None:
        with pytest.raises((ParseError, Flawed)):
            read(body)

    def test_is_not_deeper_than_the_reader_can_follow(self) -> None:
        with pytest.raises(Flawed):
            read(b"[" * 20_000 + b"]" * 20_000, max_depth=100_000)

    @given(st.binary(max_size=40))
    def test_is_the_only_thing_besides_an_error(self, body: bytes) -> None:
        try:
            read(body)
        except (ParseError, Flawed):
            return
        json.loads(body)

    @pytest.mark.parametrize(
        ("value", "counted"),
        [
            ("1", 1),
            ("{}", 2),
            ("[]", 2),
            ('{"a":1}', 2),
            ('"a"', 1),
            ('"\\""', 1),
            ('{"a":"b"}', 2),
        ],
    )
    def test_has_a_bounded_number_of_values(self, value: str, counted: int) -> None:
        """Of those that are empty or have one member, the bracket counts, too."""
        most = (MAX_VALUES - 1) // counted
        fits = f"[{','.join([value] * (most + 1 if counted == 1 else most))}]".encode()
        assert len(read(fits)) >= most
        for number in (2 * MAX_VALUES, 5 * MAX_VALUES):
            too_many = f"[{','.join([value] * number)}]".encode()
            with pytest.raises(Flawed) as caught:
                read(too_many)
            assert caught.value.violations == (("", "more than 100000 values"),)

    @pytest.mark.parametrize("value", ["1", '":"', '"\\""'])
    def test_has_no_object_with_so_many_members_that_its_reader_holds_the_process(
        self, value: str
    ) -> None:
        def make(number: int) -> bytes:
            return ("{" + ",".join(f'"{n}":{value}' for n in range(number)) + "}").encode()

        assert len(read(make(MAX_MEMBERS))) == MAX_MEMBERS
        with pytest.raises(Flawed) as caught:
            read(make(MAX_MEMBERS + 1))
        assert caught.value.violations == (("", "an object with more than 50000 members"),)

    def test_may_have_more_members_in_many_objects(self) -> None:
        row = '{"a":1,"b":2,"c":3}'
        rows = read(f"[{','.join([row] * 20_000)}]".encode())
        assert sum(map(len, rows)) > MAX_MEMBERS

    @pytest.mark.parametrize("text", ["\n", '"', "\0", "\x85"])
    def test_has_no_more_escapes_than_its_reader_cuts_in_time(self, text: str) -> None:
        body = json.dumps([text * MAX_ESCAPES]).encode()
        assert read(body) == [text * MAX_ESCAPES]
        with pytest.raises(Flawed) as caught:
            read(b'["\\t",' + body[1:])
        assert caught.value.violations == (("", "more than 1000000 escapes"),)

    def test_may_say_as_much_in_strings_as_it_likes(self) -> None:
        text = ',[{"' * MAX_VALUES
        assert read(json.dumps([text]).encode()) == [text]

    def test_costs_no_more_for_a_string_that_never_ends(self) -> None:
        body = b"[" * 65 + b'"' + b'\\"' * 100_000  # a quadratic reader needs minutes
        with pytest.raises(Flawed):
            read(body)


class TestARefusedDocument:
    def flaw_of(self, body: bytes) -> Any:
        """What could be read of a refused document."""
        with pytest.raises(Flawed) as caught:
            read(body)
        return caught.value.document

    @pytest.mark.parametrize(
        ("id_", "kept"),
        [(b"7", 7), (b'"x"', "x"), (b"1.5", 1.5), (b"1234567890123456789", 1234567890123456789)],
    )
    @pytest.mark.parametrize("flaw", [b'"a":1,"a":2', b'"a":"\\ud800"', b'"a":1e999'])
    def test_still_tells_its_id(self, flaw: bytes, id_: bytes, kept: object) -> None:
        assert self.flaw_of(b'{"id":' + id_ + b"," + flaw + b"}")["id"] == kept

    @pytest.mark.parametrize(
        "id_", [b'"\\ud800"', b"1e999", b"99999999999999999999", b"[1]", b"{}", b"true"]
    )
    def test_tells_no_id_that_cannot_be_sent_back(self, id_: bytes) -> None:
        for flaw in (b'"a":1,"a":2', b'"a":"\\ud800"'):
            document = self.flaw_of(b'{"id":' + id_ + b"," + flaw + b"}")
            assert document["id"] is NO_ID


class TestWritten:
    def test_is_compact_utf8(self) -> None:
        assert write({"a": [1, "é"]}) == '{"a":[1,"é"]}'.encode()

    def test_has_no_raw_line_break_or_nul(self) -> None:
        text = write("a\nb\r\x00\u2028")
        assert b"\n" not in text
        assert b"\r" not in text
        assert b"\x00" not in text
