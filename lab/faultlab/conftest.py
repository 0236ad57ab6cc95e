"""Tables are emptied when the processes of the folder have ended."""

from __future__ import annotations

from tests.journeys.fixtures import emptied

__all__ = ["emptied"]
