"""Each backend has its tests, and in `make test` each value of a fixture in turn has one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.selection import find_backend, find_turns_of_others, is_for_another

ONE = 'pytestmark = pytest.mark.backend("stack")\n'
AMONG_OTHERS = 'pytestmark = [\n    pytest.mark.django_db,\n    pytest.mark.backend("stack"),\n]\n'
QUICK = 'pytestmark = pytest.mark.quick_on("stack")\n'


@pytest.mark.parametrize("module", [ONE, AMONG_OTHERS, QUICK])
def test_a_module_for_one_backend_is_not_read_on_the_other(module: str) -> None:
    assert is_for_another(module, "sqlite", thorough=False)
    assert not is_for_another(module, "stack", thorough=False)


def test_with_all_cases_a_module_that_is_quick_on_one_backend_is_read_on_both() -> None:
    assert not is_for_another(QUICK, "sqlite", thorough=True)
    assert is_for_another(ONE, "sqlite", thorough=True)


@pytest.mark.parametrize(
    "module",
    [
        "import pytest\n",
        ONE + '@pytest.mark.backend("sqlite")\ndef test_one() -> None: ...\n',
        '@pytest.mark.backend("stack")\ndef test_one() -> None: ...\n',
    ],
    ids=["no mark", "a test for the other", "a mark of one test"],
)
def test_a_module_with_a_test_for_a_backend_is_read(module: str) -> None:
    assert not is_for_another(module, "sqlite", thorough=False)


class Item:
    """A test as pytest finds it, with the value of a fixture, and marks by their names."""

    def __init__(
        self, name: str, wire: str = "", path: str = "test_a.py", other: str = "", **marks: Any
    ) -> None:
        self.path, self.marks = Path(path), marks
        self.nodeid = f"{path}::{name}" + (f"[{wire}{other}]" if wire else "")
        if wire:
            self.callspec = SimpleNamespace(params={"wire": wire, "other": other})

    def get_closest_marker(self, name: str) -> Any:
        return SimpleNamespace(args=(self.marks[name],)) if name in self.marks else None

    def iter_markers(self, name: str) -> list[Any]:
        share = self.marks.get(name)
        return [SimpleNamespace(args=("wire",), kwargs={"share": share})] if share else []


def test_the_mark_for_a_backend_counts_more_than_where_a_test_is_quick() -> None:
    assert find_backend(Item("test", backend="stack", quick_on="sqlite"), thorough=False) == "stack"
    assert find_backend(Item("test", quick_on="sqlite"), thorough=False) == "sqlite"
    assert find_backend(Item("test", quick_on="sqlite"), thorough=True) is None
    assert find_backend(Item("test"), thorough=False) is None


def chosen(items: list[Item]) -> list[str]:
    others = find_turns_of_others(items)
    return [item.nodeid for item in items if item not in others]


@pytest.mark.parametrize("share", [2, 3, 4])
def test_each_value_goes_to_one_test_of_a_file_with_as_many_tests_as_shares(share: int) -> None:
    items = [Item(f"test_{test}", wire, in_turn=share) for test in range(share) for wire in "abcde"]
    found = chosen(items)
    assert sorted(name[-2] for name in found) == list("abcde")
    assert {name.partition("[")[0] for name in found} == {
        item.nodeid.partition("[")[0] for item in items
    }


def test_other_parameters_of_a_test_change_no_turn() -> None:
    for_each = [Item("test", wire, other=other, in_turn=2) for wire in "ab" for other in "123"]
    among = [Item("test", wire, other=other, in_turn=2) for other in "123" for wire in "ab"]
    assert chosen(for_each) == chosen(among) == [f"test_a.py::test[a{n}]" for n in "123"]


def test_each_file_begins_with_the_first_value() -> None:
    items = [Item("test", wire, path, in_turn=2) for path in ("a.py", "b.py") for wire in "xy"]
    assert chosen(items) == ["a.py::test[x]", "b.py::test[x]"]


def test_what_is_not_in_turn_has_all_its_values() -> None:
    items = [Item("test", "a"), Item("test", "b"), Item("test_other"), Item("test_more", in_turn=2)]
    assert len(chosen(items)) == len(items)
