"""The words for clients about statuses of HTTP that a model answers with."""

from __future__ import annotations

from a2a_frameworks.shared.model_call import ErrorText

__all__ = ["find_status_words"]

#: Statuses, as far as one word is not enough for all from 400, and all from 500.
STATUSES = {
    **dict.fromkeys((401, 403, 404), ErrorText.UNUSABLE),
    408: ErrorText.SILENT,
    **dict.fromkeys((429, 503), ErrorText.BUSY),
}
SERVER_ERROR = 500


def find_status_words(status: int) -> str:
    """Return the words for a status that is an error."""
    other = ErrorText.REFUSED_REQUEST if status < SERVER_ERROR else ErrorText.SILENT
    return STATUSES.get(status, other)
