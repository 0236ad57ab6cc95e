"""ListTasks in the form of the draft, which 0.3 accepts, too."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from a2a_tasks.protocol.dialects.reading import ENUM_STATES, enum_key, page_size
from a2a_tasks.protocol.fields import Fields, rfc3339
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import TaskState

__all__ = ["read_word_listing"]

_STATES: Mapping[object, TaskState | None] = {
    **ENUM_STATES,
    **{state.word: state for state in TaskState},
    "cancelled": TaskState.CANCELED,
}
_MILLISECONDS = re.compile(r"\d{1,15}", re.ASCII)


def _state(fields: Fields) -> TaskState | None:
    """Read a state by its word, or by the name or number of its enum member."""
    status = enum_key(fields.value("status"))
    if fields.value("status") is not None and status not in _STATES and status != "":
        fields.bad("status", "must be the name of a task state")
    return _STATES.get(status)


def _moment(fields: Fields) -> str | None:
    """Read `lastUpdatedAfter`: milliseconds since 1970, as a number or its digits."""
    found = fields.value("last_updated_after")
    if found is None:
        return None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not _MILLISECONDS.fullmatch(str(found)):
        fields.bad("last_updated_after", "must be milliseconds since 1970")
        return None
    try:
        return rfc3339(
            datetime.datetime.fromtimestamp(0, datetime.UTC)
            + datetime.timedelta(milliseconds=int(found))
        )
    except OverflowError:
        fields.bad("last_updated_after", "is out of range")
        return None


def read_word_listing(fields: Fields) -> ListTasksRequest:
    """Read the request; without a history length the answer has no history."""
    return ListTasksRequest(
        context_id=fields.string("context_id"),
        status=_state(fields),
        page_size=page_size(fields),
        page_token=fields.string("page_token") or "",
        history_length=fields.length("history_length") or 0,
        status_timestamp_after=_moment(fields),
        include_artifacts=bool(fields.boolean("include_artifacts")),
    )
