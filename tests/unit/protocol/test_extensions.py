"""Extensions: what a request asks for, and what it gets."""

from __future__ import annotations

import pytest

from a2a_tasks.protocol.errors import ExtensionSupportRequired
from a2a_tasks.protocol.extensions import activate, parse_requested

ONE, TWO, THREE = "urn:x:1", "urn:x:2", "urn:x:3"


class TestExtensions:
    @pytest.mark.parametrize(
        ("values", "uris"),
        [
            ([], []),
            ([""], []),
            ([ONE], [ONE]),
            ([f" {ONE} ,{TWO},, "], [ONE, TWO]),
            ([ONE, f"{TWO},{THREE}"], [ONE, TWO, THREE]),
        ],
    )
    def test_are_read_from_repeated_and_joined_headers(
        self, values: list[str], uris: list[str]
    ) -> None:
        """R-162."""
        assert parse_requested(values) == uris

    def test_are_in_force_when_declared_and_requested(self) -> None:
        assert activate([TWO, ONE], [ONE, TWO, THREE], []) == [ONE, TWO]

    def test_that_nobody_knows_are_ignored(self) -> None:
        """R-085."""
        assert activate(["urn:unknown", f"{ONE}/v2"], [ONE], []) == []

    def test_are_compared_to_the_letter(self) -> None:
        assert activate([ONE.upper()], [ONE], []) == []

    def test_are_in_force_once_however_often_requested(self) -> None:
        assert activate([ONE, ONE], [ONE], []) == [ONE]

    @pytest.mark.parametrize("asked", [[], [TWO], ["urn:x"]])
    def test_that_are_required_must_be_announced(self, asked: list[str]) -> None:
        """R-084."""
        with pytest.raises(ExtensionSupportRequired) as caught:
            activate(asked, [ONE, TWO], [ONE])
        assert caught.value.metadata == {"uri": ONE}

    def test_that_are_required_are_in_force_when_announced(self) -> None:
        assert activate([ONE], [ONE, TWO], [ONE]) == [ONE]
