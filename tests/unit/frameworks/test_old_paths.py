"""Until the next release the public names of adapters are found at their old paths, too."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from importlib import import_module

import pytest

import a2a_frameworks
from a2a_frameworks.table import CALLABLE, FRAMEWORKS
from a2a_tasks import frameworks as old
from a2a_tasks.agents.frameworks import Framework

HERE = "tests/unit/frameworks/test_old_paths.py"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Old modules are made when they are first imported."""
    yield
    for name in old.MODULES:
        sys.modules.pop(f"{old.__name__}.{name}", None)
        vars(old).pop(name, None)


@pytest.mark.parametrize("row", [*FRAMEWORKS, CALLABLE], ids=lambda row: row.adapter)
def test_an_adapter_is_found_with_a_warning(row: Framework) -> None:
    module, _, name = row.adapter.partition(":")
    path = module.replace("a2a_frameworks", "a2a_tasks.frameworks")
    with pytest.warns(DeprecationWarning, match=f"{path} is {module} now"):
        found = import_module(path)
    assert getattr(found, name) is row.load()


@pytest.mark.parametrize("name", ["base:FrameworkAgent", "model_agent:ModelAgent"])
def test_so_is_the_base_class_of_adapters(name: str) -> None:
    module, _, name = name.partition(":")
    with pytest.warns(DeprecationWarning, match=f"is a2a_frameworks.shared.{module} now"):
        found = import_module(f"a2a_tasks.frameworks.{module}")
    new = import_module(f"a2a_frameworks.shared.{module}")
    assert getattr(found, name) is getattr(new, name)


def test_so_is_host_and_the_warning_names_the_line_of_the_import() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from a2a_tasks.frameworks.executor import ExecutorAgent  # type: ignore[import-not-found]  # noqa: F401, PLC0415

        from a2a_tasks.frameworks import host  # noqa: PLC0415
    assert host is a2a_frameworks.host
    assert {warning.category for warning in caught} == {DeprecationWarning}
    assert all(warning.filename.endswith(HERE) for warning in caught)


def test_other_names_are_not_there() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("a2a_tasks.frameworks.executor_call")
    with pytest.raises(AttributeError, match=r"a2a_tasks\.frameworks.*'table'"):
        _ = old.table
