"""An error below `/v1` before the dialect is known: valid for readers of 0.3 and of the draft."""

from __future__ import annotations

from a2a_tasks.protocol.dialects.dialect import CompatOptions, DialectRefusal
from a2a_tasks.protocol.dialects.dr import Draft
from a2a_tasks.protocol.dialects.v03_rest import V03Rest
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.jsontext import write

__all__ = ["refuse"]


def refuse(fault: A2AError, switches: CompatOptions) -> DialectRefusal:
    """Return the draft's problem details with the members of 0.3's error added."""
    draft = Draft(switches)
    body = {**draft.problem(fault), **V03Rest(switches).error(fault)}
    body.pop("data", None)
    return DialectRefusal(draft.http_status(fault), write(body), draft.PROBLEM)
