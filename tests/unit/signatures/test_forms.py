"""What a signature vouches for: canonical JSON by RFC 8785's own vectors, and members by the rules of presence."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from a2a.types import AgentCard
from google.api import field_behavior_pb2  # type: ignore[import-untyped]
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given

from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.dialects.signed_members import FINAL, FieldKind, MapOf
from a2a_tasks.signatures.forms import SIGNED, form_of, loose, payload, strict
from tests.support.rows import rows
from tests.support.signatures.given import CARD, at_leisure
from tests.unit.protocol.test_cards import ALL, FULL, any_cards

#: RFC 8785 appendix B: bits of a double, and how it is written.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
#: §3.2.3: members by UTF-16 code units, which is neither the order of code points nor of UTF-8.
SORTED = {
    "\r": "Carriage Return",
    "1": "One",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis",
    "\u20ac": "Euro Sign",
    "\U0001f600": "Emoji: Grinning Face",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
}


class TestCanonicalJson:
    @rows(("bits", "written"), NUMBERS.items())
    def test_writes_numbers_as_ecmascript_does(self, bits: str, written: str) -> None:
        (number,) = struct.unpack(">d", bytes.fromhex(bits))
        assert payload({"n": number}) == f'{{"n":{written}}}'.encode()

    @rows("bits", ["7fffffffffffffff", "7ff0000000000000"])
    def test_has_no_nan_and_no_infinity(self, bits: str) -> None:
        (number,) = struct.unpack(">d", bytes.fromhex(bits))
        with pytest.raises(ValueError, match="no canonical form"):
            payload({"n": number})

    def test_is_that_of_the_rfc(self) -> None:
        """§3.2.2"""
        document = {
            "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
            "literals": [None, True, False],
        }
        assert (
            payload(document)
            == (
                '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
                '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
            ).encode()
        )

    def test_sorts_members_by_utf_16(self) -> None:
        written = payload(dict(sorted(SORTED.items(), key=lambda item: item[1]))).decode()
        places = [written.index(name) for name in SORTED.values()]
        assert places == sorted(places)

    @rows("value", [2**53 + 1, -(2**53) - 1, "\ud800"])
    def test_has_nothing_that_some_reader_would_change(self, value: object) -> None:
        with pytest.raises(ValueError, match="no canonical form"):
            payload({"n": value})

    def test_takes_texts_as_they_are(self) -> None:
        assert payload({"e\u0301": "\u00e9\u007f/"}) == '{"e\u0301":"\u00e9\u007f/"}'.encode()


class TestTheStrictForm:
    def test_is_that_of_the_specification(self) -> None:
        """The example of §8.4.1, with what it does not show."""
        card = {
            "name": "E",
            "description": "",
            "capabilities": {"streaming": False, "pushNotifications": False, "extensions": []},
            "skills": [],
        }
        assert payload(strict(card, "v10")) == (
            b'{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"E","skills":[]}'
        )

    def test_leaves_out_the_signatures_and_what_is_not_of_the_card(self) -> None:
        more = {"signatures": [{"protected": "x", "signature": "y"}], "url": "u", "x-own": 1}
        assert strict({**CARD, **more}, "v10") == strict(CARD, "v10")

    @rows(
        "empty",
        [
            {"provider": {}},
            {"securitySchemes": {}},
            {"securityRequirements": []},
            {"iconUrl": None},
        ],
    )
    def test_leaves_out_what_is_empty_and_need_not_be_there(self, empty: dict[str, Any]) -> None:
        bare = {name: value for name, value in CARD.items() if name not in empty}
        assert strict({**bare, **empty}, "v10") == strict(bare, "v10")

    @rows(
        "kept",
        [
            {"documentationUrl": ""},
            {"description": ""},
            {"skills": []},
            {"securitySchemes": {"m": {"mtlsSecurityScheme": {}}}},
            {"securityRequirements": [{"schemes": {"m": {}}}]},
            {"securityRequirements": [{}]},
        ],
    )
    def test_keeps_what_is_required_or_told_to_be_there(self, kept: dict[str, Any]) -> None:
        assert strict({**CARD, **kept}, "v10").items() >= kept.items()

    def test_leaves_data_as_it_is(self) -> None:
        params: dict[str, Any] = {"empty": "", "none": None, "list": [], "deep": {"no": False}}
        told = {"extensions": [{"uri": "u", "params": params, "required": False}]}
        shown = strict({**CARD, "capabilities": told}, "v10")["capabilities"]
        assert shown == {"extensions": [{"uri": "u", "params": params}]}

    def test_of_a_hybrid_is_what_it_is_of_1_0(self) -> None:
        hybrid = cards.hybrid(FULL, "https://h")
        assert strict(hybrid, "hybrid") == strict(hybrid, form_of(hybrid))
        assert strict(hybrid, "hybrid").keys() == CARD.keys()

    def test_of_0_3_is_all_of_it(self) -> None:
        card = ALL["v03"](FULL)
        assert strict({**card, "signatures": [1]}, "v03") == card

    def test_survives_cards_of_any_shape(self) -> None:
        odds: list[dict[str, Any]] = [{"skills": 3}, {"skills": [1]}, {"provider": [[{}]]}]
        for odd in odds:
            assert strict({**CARD, **odd}, "v10")

    @at_leisure
    @given(card=any_cards)
    def test_is_taken_of_itself_unchanged(self, card: dict[str, Any]) -> None:
        for form in SIGNED:
            shown = strict(ALL[form](card), form)
            assert strict(shown, form) == shown


class TestTheLooseForm:
    def test_has_nothing_empty(self) -> None:
        told = loose(CARD, "v10")
        assert told is not None
        assert b'""' not in payload(told)
        assert b"[]" not in payload(told)
        assert b"{}" not in payload(told)

    def test_is_none_where_it_is_the_strict_one(self) -> None:
        bare = {
            "name": "E",
            "description": "Has nothing empty",
            "capabilities": {"streaming": False},
        }
        assert loose(bare, "v10") is None

    @rows("form", ["v03", "dr"])
    def test_is_none_where_nobody_reads_it(self, form: str) -> None:
        assert loose({**ALL[form](FULL), "description": ""}, form) is None


class TestTheForm:
    @rows(
        ("card", "found"),
        [
            ({"supportedInterfaces": []}, "v10"),
            ({"supportedInterfaces": [], "protocolVersion": "1.0"}, "dr"),
            ({"supportedInterfaces": [{"url": "u"}]}, "dr"),
            ({"protocolVersion": "1.0"}, "dr"),
            ({"protocolVersion": "0.3.0"}, "v03"),
            ({}, "v03"),
        ],
    )
    def test_is_told_also_by_a_poor_card(self, card: dict[str, Any], found: str) -> None:
        assert form_of(card) == found

    @rows(("form", "found"), [("v10", "v10"), ("hybrid", "v10"), ("dr", "dr"), ("v03", "v03")])
    def test_is_told_by_the_card(self, form: str, found: str) -> None:
        assert form_of(ALL[form](FULL)) == found


def differences(told: FieldKind, message: Any) -> Iterator[str]:
    """Where our table of a kind is not the SDK's message."""
    fields = {field.json_name: field for field in message.fields}
    yield from (f"{message.name}.{name}" for name in told.members.keys() ^ fields.keys())
    kept = {name for name, field in fields.items() if stays(field)}
    yield from (f"{message.name}.{name}: kept" for name in told.kept ^ kept)
    for name, nested in told.members.items():
        of = fields[name].message_type
        if isinstance(nested, MapOf):
            yield from differences(nested.of, of.fields_by_name["value"].message_type)
        elif nested is not None:
            yield from differences(nested, of)
        elif of is not None and of.full_name.startswith("lf.a2a"):
            assert of.GetOptions().map_entry, f"{name} is data"


def stays(field: FieldDescriptor) -> bool:
    """Is it required, or `optional`, or one of a oneof?"""
    behaviour = field.GetOptions().Extensions[field_behavior_pb2.field_behavior]
    return field_behavior_pb2.REQUIRED in behaviour or field.containing_oneof is not None


class TestTheTable:
    def test_is_the_published_schema_but_for_the_signatures(self) -> None:
        assert list(differences(FINAL, AgentCard.DESCRIPTOR)) == ["AgentCard.signatures"]
