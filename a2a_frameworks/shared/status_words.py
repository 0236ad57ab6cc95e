"""The words for clients about statuses of HTTP that a model answers with."""

from __future__ import annotations

from a2a_frameworks.shared.model_call import Words

__all__ = ["find_status_words"]

#: Statuses, as far as one word is not enough for all from 400, and all from 500.
STATUSES = {
    401: Words.UNUSABLE,
    403: Words.UNUSABLE,
    404: Words.UNUSABLE,
    408: Words.SILENT,
    429: Words.BUSY,
    503: Words.BUSY,
}
SERVER_ERROR = 500


def find_status_words(status: int) -> str:
    """Return the words for a status that is an error."""
    other = Words.REFUSED_REQUEST if status < SERVER_ERROR else Words.SILENT
    return STATUSES.get(status, other)
