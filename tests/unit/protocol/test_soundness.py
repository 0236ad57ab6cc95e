"""What an agent says is held to the protocol's rules."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.protocol.soundness import check_json, check_parts
from a2a_tasks.protocol.values import Part


class TestParts:
    def test_of_every_kind_are_sound(self) -> None:
        check_parts([Part(text=""), Part(raw=""), Part(url="https://x.example"), Part(data=None)])

    @pytest.mark.parametrize(
        "parts", [[], [Part()], [Part(text="x", data=1)], [Part(raw="", url="")]]
    )
    def test_none_none_at_all_or_two_contents_are_not(self, parts: list[Part]) -> None:
        with pytest.raises(ValueError, match="part"):
            check_parts(parts)


class TestJson:
    @pytest.mark.parametrize(
        "value", [None, True, "x\x00", 1.5, -(2**63), 2**64 - 1, {"a": [1, {"b": None}]}]
    )
    def test_that_every_reader_reads_alike_is_sound(self, value: Any) -> None:
        check_json(value)

    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), 2**64, -(2**63) - 1, {"a": [1, {"b": 2**70}]}]
    )
    def test_that_they_do_not_is_not(self, value: Any) -> None:
        with pytest.raises(ValueError, match=r"JSON|64 bits"):
            check_json(value)
