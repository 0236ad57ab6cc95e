"""Times as the console, logs and the API write them, so that they can be compared (`a2a_console/times.py`)."""

from __future__ import annotations

__all__ = ["DATETIME_FORMAT", "DATE_FORMAT"]

DATETIME_FORMAT = "Y-m-d H:i:s"
DATE_FORMAT = "Y-m-d"
