"""The dialects, one module per wire generation: each decodes requests and encodes values and errors for its clients.

A dialect depends neither on HTTP nor on the store. To add one: write the module, and add rows to `CLASSES` and to the
detection table (docs/architecture.md).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from a2a_tasks.protocol.dialects.dialect import CompatOptions, Dialect, Subject
from a2a_tasks.protocol.dialects.dr import Draft
from a2a_tasks.protocol.dialects.s0 import S0
from a2a_tasks.protocol.dialects.v00 import V00
from a2a_tasks.protocol.dialects.v01 import V01
from a2a_tasks.protocol.dialects.v02 import V02
from a2a_tasks.protocol.dialects.v03 import V03
from a2a_tasks.protocol.dialects.v10 import V10

__all__ = ["CLASSES", "DIALECTS", "Dialect", "Subject", "CompatOptions", "dialects"]

#: All dialects, oldest first.
CLASSES: tuple[type[Dialect], ...] = (S0, V00, V01, V02, V03, Draft, V10)


@functools.lru_cache(maxsize=64)
def dialects(switches: CompatOptions) -> Mapping[str, Dialect]:
    """Return the dialects by their codes, with the operator's options."""
    return {cls.code: cls(switches) for cls in CLASSES}


#: The dialects with all options at their defaults.
DIALECTS = dialects(CompatOptions())
