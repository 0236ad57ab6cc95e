"""One module a wire generation: decode a request to canonical values, encode values and errors for its clients.

A dialect knows nothing of HTTP or the store. To add one: write the module, add a row to `DIALECTS`.
"""

from __future__ import annotations

from a2a_tasks.protocol.dialects import v10
from a2a_tasks.protocol.dialects.dialect import Dialect

__all__ = ["DIALECTS", "SUPPORTED_VERSIONS", "Dialect"]

#: A2A-Version (Major.Minor) to dialect.
DIALECTS: dict[str, Dialect] = {"1.0": v10.DIALECT}
SUPPORTED_VERSIONS = tuple(DIALECTS)
