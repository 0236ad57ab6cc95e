"""Old import paths of the adapters, such as `a2a_tasks.frameworks.executor`. They are in `a2a_frameworks`.

For one release the public names are found here, too, with a DeprecationWarning.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

#: The package with the adapters. It is above this one, so that only its name is here.
HOME = "a2a_frameworks"
ADAPTERS = (
    "adk",
    "agent_framework",
    "callable",
    "crewai",
    "executor",
    "langgraph",
    "openai_agents",
    "pydantic_ai",
    "strands",
)
#: Old modules, and where in `HOME` their names are.
MODULES = {
    **{name: name for name in ADAPTERS},
    "base": "shared.base",
    "model_agent": "shared.model_agent",
}
#: Submodules are not in files, but are found by `_Finder`.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    if name != "host":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _warn(f"{__name__}.host", f"{HOME}.host")
    return import_module(HOME).host


class _Finder(MetaPathFinder, Loader):
    """Makes the old modules when they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        return spec_from_loader(fullname, self) if parent == __name__ and name in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        new = f"{HOME}.{MODULES[module.__name__.rpartition('.')[2]]}"
        _warn(module.__name__, new)
        found = import_module(new)
        module.__dict__.update({name: getattr(found, name) for name in found.__all__})


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is {new} now", DeprecationWarning, stacklevel=3)


sys.meta_path.append(_Finder())
