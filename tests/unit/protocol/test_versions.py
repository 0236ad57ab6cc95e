"""The A2A-Version of a request: what it asks for, and what is refused (dialects §1.2)."""

from __future__ import annotations

import pytest

from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import VersionNotSupported
from a2a_tasks.protocol.versions import SUPPORTED, read_version, refuse_version
from tests.support.rows import rows


def refused(header: str, query: str) -> VersionNotSupported:
    """The error a version is answered with."""
    with pytest.raises(VersionNotSupported) as caught:
        read_version(header, query)
    return caught.value


class TestTheVersion:
    @rows("version", ["1.0", "0.3", "0.2", "0.1", "0.0"])
    @rows("written", ["{}", " {} ", "\t{}", "{}.0", "{}.1", "{}.999"])
    def test_is_found_by_major_and_minor(self, version: str, written: str) -> None:
        """R-120."""
        asked = written.format(version)
        assert read_version(asked, "") == version
        assert read_version("", asked) == version

    @rows("header", ["", " "])
    @rows("query", ["", " "])
    def test_may_be_absent(self, header: str, query: str) -> None:
        assert read_version(header, query) == ""

    @rows(
        "asked",
        [
            "0.5",
            "0.4",
            "0.25",
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
            "+1.0",
            "１.０",
            "1.0\x00",
            "1.0\n.1",
            "seed-0",
            "1.0-draft",
        ],
    )
    def test_that_nobody_speaks_is_refused(self, asked: str) -> None:
        """R-121."""
        for header, query in ((asked, ""), ("", asked)):
            fault = refused(header, query)
            assert fault.metadata["requestedVersion"] == asked
            assert fault.metadata["supportedVersions"] == "1.0,0.3,0.2,0.1,0.0"

    @rows("version", SUPPORTED)
    def test_may_come_twice_if_it_is_the_same(self, version: str) -> None:
        assert read_version(version, version) == version

    @rows(("header", "query"), [("1.0", "1.0.1"), ("0.3.0", "0.3")])
    def test_may_come_twice_with_another_patch(self, header: str, query: str) -> None:
        """R-120: the patch number must not be considered."""
        assert read_version(header, query) == header[:3]

    @rows(
        ("header", "query"),
        [("1.0", "0.3"), ("0.3", "1.0"), ("0.3", "0.2"), ("1.0", "abc"), ("abc", "1.0")],
    )
    def test_must_not_contradict_itself(self, header: str, query: str) -> None:
        assert refused(header, query).metadata["requestedVersion"] == header


class TestTheVersionsSpoken:
    def test_are_those_of_the_dialects_newest_first(self) -> None:
        spoken = {dialect.version for dialect in DIALECTS.values() if dialect.version}
        assert sorted(spoken, reverse=True) == list(SUPPORTED)

    def test_are_told_to_who_asks_for_another(self) -> None:
        assert refuse_version("7.0").metadata == {
            "requestedVersion": "7.0",
            "supportedVersions": ",".join(SUPPORTED),
        }
