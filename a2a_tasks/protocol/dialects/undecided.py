"""An error below `/v1` before it is clear who asks: good for readers of 0.3 and of the draft."""

from __future__ import annotations

from a2a_tasks.protocol.dialects.dialect import Refusal, Switches
from a2a_tasks.protocol.dialects.dr import Draft
from a2a_tasks.protocol.dialects.v03_rest import V03Rest
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.jsontext import write

__all__ = ["refuse"]


def refuse(fault: A2AError, switches: Switches) -> Refusal:
    """The draft's problem details with the members of 0.3's error."""
    draft = Draft(switches)
    body = {**draft.problem(fault), **V03Rest(switches).error(fault)}
    body.pop("data", None)
    return Refusal(draft.http_status(fault), write(body), draft.PROBLEM)
