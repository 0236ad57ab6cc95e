"""Version and extensions: what a request asks for, and what it gets."""

from __future__ import annotations

import pytest

from a2a_tasks.protocol.errors import ExtensionSupportRequired, VersionNotSupported
from a2a_tasks.protocol.negotiation import activate, choose, requested_extensions

ONE, TWO, THREE = "urn:x:1", "urn:x:2", "urn:x:3"


class TestTheVersion:
    @pytest.mark.parametrize("asked", ["1.0", " 1.0 ", "1.0.0", "1.0.1", "1.0.999"])
    def test_is_found_by_major_and_minor(self, asked: str) -> None:
        """R-120."""
        assert choose(asked, "").code == "v10"
        assert choose("", asked).code == "v10"

    @pytest.mark.parametrize("asked", ["", " "])
    def test_may_be_absent(self, asked: str) -> None:
        assert choose(asked, asked).code == "v10"

    @pytest.mark.parametrize(
        "asked",
        [
            "0.5",
            "1.1",
            "2.0",
            "99.0",
            "abc",
            "v1.0",
            "1",
            "1.",
            ".0",
            "1.0.",
            "1.0.0.0",
            "01.0",
            "1.00",
            "1,0",
            "1.0-rc",
            "1.0 2.0",
            "1.0,1.0",
            "-1.0",
            "１.０",
            "1.0\x00",
        ],
    )
    def test_that_nobody_speaks_is_refused(self, asked: str) -> None:
        """R-121."""
        for header, query in ((asked, ""), ("", asked)):
            with pytest.raises(VersionNotSupported) as caught:
                choose(header, query)
            assert caught.value.metadata["requestedVersion"] == asked
            assert "1.0" in caught.value.metadata["supportedVersions"].split(",")

    def test_may_come_twice_if_it_is_the_same(self) -> None:
        assert choose("1.0", "1.0").code == "v10"

    def test_may_come_twice_with_another_patch(self) -> None:
        """R-120: the patch number must not be considered."""
        assert choose("1.0", "1.0.1").code == "v10"

    @pytest.mark.parametrize(("header", "query"), [("1.0", "0.3"), ("0.3", "1.0"), ("1.0", "abc")])
    def test_must_not_contradict_itself(self, header: str, query: str) -> None:
        with pytest.raises(VersionNotSupported):
            choose(header, query)


class TestTheVersionByTheLetter:
    def test_is_0_3_when_absent(self) -> None:
        """R-122."""
        with pytest.raises(VersionNotSupported) as caught:
            choose("", "", strict=True)
        assert caught.value.metadata["requestedVersion"] == "0.3"

    def test_is_1_0_when_said(self) -> None:
        assert choose("1.0", "", strict=True).code == "v10"


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
        assert requested_extensions(values) == uris

    def test_are_in_force_when_declared_and_requested(self) -> None:
        assert activate([TWO, ONE], [ONE, TWO, THREE], []) == [ONE, TWO]

    def test_that_nobody_knows_are_ignored(self) -> None:
        """R-085."""
        assert activate(["urn:unknown", f"{ONE}/v2"], [ONE], []) == []

    def test_are_compared_to_the_letter(self) -> None:
        assert activate([ONE.upper()], [ONE], []) == []

    @pytest.mark.parametrize("requested", [[], [TWO], ["urn:x"]])
    def test_that_are_required_must_be_announced(self, requested: list[str]) -> None:
        """R-084."""
        with pytest.raises(ExtensionSupportRequired) as caught:
            activate(requested, [ONE, TWO], [ONE])
        assert caught.value.metadata == {"uri": ONE}

    def test_that_are_required_are_in_force_when_announced(self) -> None:
        assert activate([ONE], [ONE, TWO], [ONE]) == [ONE]
