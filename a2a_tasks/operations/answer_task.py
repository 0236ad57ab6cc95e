"""An operator answers, in its owner's place, what a task waits for.

It is a message like the owner's: the same checks, the same drawer, the same agent, for the caller and with the scopes of
the message before it. Its metadata says `ANSWERED_BY: "operator"`, the turn says `by_operator`, the audit log says who.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from a2a_tasks.agents.content import data as data_part
from a2a_tasks.agents.content import text as text_part
from a2a_tasks.audit import Action
from a2a_tasks.operations.acceptance import accept, check
from a2a_tasks.operations.line import place_in_line
from a2a_tasks.operations.on_behalf import call_for, request_for
from a2a_tasks.protocol.errors import InvalidParams, ParseError, TaskNotFound, TaskNotWaiting
from a2a_tasks.protocol.jsontext import Flawed, read
from a2a_tasks.protocol.operators import ANSWERED_BY, OPERATOR
from a2a_tasks.protocol.values import Part, Task
from a2a_tasks.store.hop import hop
from a2a_tasks.store.waiting import asked

__all__ = ["answer_by_key", "content"]

logger = logging.getLogger(__name__)


def content(text: str = "", data: str = "", files: Sequence[Part] = ()) -> tuple[Part, ...]:
    """What an operator typed as parts: text, JSON, files. Raises InvalidParams where there is nothing, or no JSON."""
    said: list[Part] = [text_part(text)] if text.strip() else []
    if data.strip():
        said.append(data_part(_document(data)))
    said += files
    if not said:
        raise InvalidParams.field("text", "There is nothing to send")
    return tuple(said)


def _document(text: str) -> object:
    """The JSON in the text, as a client's body is read. Raises InvalidParams."""
    try:
        return read(text.encode(errors="surrogatepass"))
    except ParseError:
        raise InvalidParams.field("data", "is not JSON") from None
    except Flawed as flaw:
        raise InvalidParams.field("data", flaw.violations[0][1]) from None


async def answer_by_key(
    task: int, parts: Sequence[Part], *, by: str, event: int | None = None
) -> Task:
    """Answer the task with this primary key, for the operator `by`; returns it as it goes on.

    `event`: the number of the newest event the operator saw (`Task.last_event`); if the task asks something else since
    then, the answer is refused. None = whatever it asks now. Of several answers to one question exactly one is accepted.

    Raises TaskNotFound; TaskNotWaiting, AgentOff; ContentTypeNotSupported, InvalidParams; RateLimited, Overloaded.
    """
    found = await hop(asked, task)
    if found is None:
        raise TaskNotFound(taskId=str(task))
    if not found.waits:
        raise TaskNotWaiting(f"The task is {found.state.word}: it does not wait for an answer")
    request = request_for(found, parts, {ANSWERED_BY: OPERATOR})
    call = call_for(found, Action.TASK_ANSWER, event=event)
    check(request, call)
    with place_in_line():
        accepted = await accept(request, call)
    logger.info("task %s was answered by operator %s", found.public_id, by)
    return accepted.view
