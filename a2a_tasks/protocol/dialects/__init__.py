"""One module a wire generation: decode a request to canonical values, encode values and errors for its clients.

A dialect knows nothing of HTTP or the store. To add one: write the module, add a row to `CLASSES` (and, if it is to
be asked for, to the mounts and the detection table).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from a2a_tasks.protocol.dialects.dialect import Dialect, Subject, Switches
from a2a_tasks.protocol.dialects.dr import Draft
from a2a_tasks.protocol.dialects.s0 import S0
from a2a_tasks.protocol.dialects.v00 import V00
from a2a_tasks.protocol.dialects.v01 import V01
from a2a_tasks.protocol.dialects.v02 import V02
from a2a_tasks.protocol.dialects.v03 import V03
from a2a_tasks.protocol.dialects.v10 import V10

__all__ = ["CLASSES", "DIALECTS", "Dialect", "Subject", "Switches", "dialects"]

#: Oldest first.
CLASSES: tuple[type[Dialect], ...] = (S0, V00, V01, V02, V03, Draft, V10)


@functools.lru_cache(maxsize=64)
def dialects(switches: Switches) -> Mapping[str, Dialect]:
    """The dialects by their codes, as the operator wants them."""
    return {cls.code: cls(switches) for cls in CLASSES}


#: As they are if nothing is switched.
DIALECTS = dialects(Switches())
