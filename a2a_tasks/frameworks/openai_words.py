"""The words for clients about errors of OpenAI's client, which many frameworks ask models with."""

from __future__ import annotations

import json

import openai

from a2a_tasks.frameworks.model_call import ModelSilent, Words

__all__ = ["find_cause_words", "find_status_words"]

#: Codes of errors of the API and the words for clients.
CODES = {"insufficient_quota": Words.UNUSABLE, "context_length_exceeded": Words.TOO_LONG}
#: Status codes of HTTP, as far as one word is not enough for all from 400, and all from 500.
STATUSES = {
    401: Words.UNUSABLE,
    403: Words.UNUSABLE,
    404: Words.UNUSABLE,
    408: Words.SILENT,
    429: Words.BUSY,
    503: Words.BUSY,
}
SERVER_ERROR = 500
#: Other errors and the words for clients, the most particular first.
WORDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (openai.APIResponseValidationError, Words.UNFIT),
    ((openai.APIError, ModelSilent), Words.SILENT),
    (openai.OpenAIError, Words.UNUSABLE),  # there is no key
    (json.JSONDecodeError, Words.UNFIT),
)


def find_status_words(fault: openai.APIStatusError) -> str:
    """Return the words for an answer that is an error."""
    if fault.code in CODES:
        return CODES[fault.code]
    other = Words.REFUSED_REQUEST if fault.status_code < SERVER_ERROR else Words.SILENT
    return STATUSES.get(fault.status_code, other)


def find_cause_words(fault: BaseException | None) -> str:
    """Return the words for an error of the client, which a framework may have wrapped in others; empty = it is none."""
    while fault is not None:
        if isinstance(fault, openai.APIStatusError):
            return find_status_words(fault)
        for kinds, words in WORDS:
            if isinstance(fault, kinds):
                return words
        fault = fault.__cause__ or fault.__context__
    return ""
