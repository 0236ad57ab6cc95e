"""The answer of an operator to a waiting task, on behalf of its owner.

The answer is a message like the owner's: with the same checks, for the same task and agent, and with the caller and the
scopes of the message before it. Its metadata has `ANSWERED_BY: "operator"`, the turn has `by_operator`, and the audit
log names the operator.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from a2a_console.queue.on_behalf import call_for, request_for
from a2a_console.queue.waiting import find_question
from a2a_tasks.agents.emission import data as data_part
from a2a_tasks.agents.emission import text as text_part
from a2a_tasks.audit import Action
from a2a_tasks.operations.accept_message import accept, check
from a2a_tasks.operations.backpressure import limit_waiting
from a2a_tasks.protocol.errors import InvalidParams, ParseError, TaskNotFound, TaskNotWaiting
from a2a_tasks.protocol.jsontext import Flawed, read
from a2a_tasks.protocol.operators import ANSWERED_BY, OPERATOR
from a2a_tasks.protocol.values import Part, Task
from a2a_tasks.store.db import run_in_thread

__all__ = ["answer_by_key", "content"]

logger = logging.getLogger(__name__)


def content(text: str = "", data: str = "", files: Sequence[Part] = ()) -> tuple[Part, ...]:
    """Return an operator's input as parts: text, JSON, files. Raises InvalidParams if it is empty or not JSON."""
    content: list[Part] = [text_part(text)] if text.strip() else []
    if data.strip():
        content.append(data_part(_document(data)))
    content += files
    if not content:
        raise InvalidParams.field("text", "There is nothing to send")
    return tuple(content)


def _document(text: str) -> object:
    """Parse the JSON in the text, with the limits of a client's body. Raises InvalidParams."""
    try:
        return read(text.encode(errors="surrogatepass"))
    except ParseError:
        raise InvalidParams.field("data", "is not JSON") from None
    except Flawed as flaw:
        raise InvalidParams.field("data", flaw.violations[0][1]) from None


async def answer_by_key(
    task: int, parts: Sequence[Part], *, by: str, event: int | None = None
) -> Task:
    """Answer the task with this primary key, for the operator `by`. Return the task as it continues.

    `event`: the number of the newest event that the operator saw (`Task.last_event`). If the task has asked something
    else since then, the answer is refused. None = answer the current question, whatever it is. Of several answers to
    one question exactly one is accepted. Raises TaskNotFound; TaskNotWaiting, AgentOff; ContentTypeNotSupported,
    InvalidParams; RateLimited, Overloaded.
    """
    found = await run_in_thread(find_question, task)
    if found is None:
        raise TaskNotFound(taskId=str(task))
    if not found.waits:
        raise TaskNotWaiting(f"The task is {found.state.word}: it does not wait for an answer")
    request = request_for(found, parts, {ANSWERED_BY: OPERATOR})
    call = call_for(found, Action.TASK_ANSWER, event=event)
    check(request, call)
    with limit_waiting():
        accepted = await accept(request, call)
    logger.info("task %s was answered by operator %s", found.public_id, by)
    return accepted.view
