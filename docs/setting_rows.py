"""The host's own settings as rows of a table, from `a2a_tasks/conf.py`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import get_type_hints

from a2a_tasks.conf import HostSettings

__all__ = ["setting_rows"]

SETTING = re.compile(r"((?: *#: .*\n)+) *([A-Z0-9_]+): ")


def setting_rows(of: type = HostSettings) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and comment of every `A2A_*` setting of a class of `conf.py`, as they are declared."""
    types = get_type_hints(of)
    for comment, key in SETTING.findall(inspect.getsource(of)):
        text = " ".join(line.strip().removeprefix("#: ") for line in comment.splitlines())
        yield f"`A2A_{key}`", types[key].__name__, write_default(of.__dict__[key]), text


def write_default(default: object) -> str:
    """A default as it is written in the environment."""
    text = str(int(default)) if isinstance(default, bool) else str(default)
    return f"`{text}`" if text else "empty"
