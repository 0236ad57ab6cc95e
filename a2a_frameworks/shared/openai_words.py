"""The words for clients about errors of OpenAI's client, which many frameworks ask models with."""

from __future__ import annotations

import json

import openai

from a2a_frameworks.shared.model_call import ErrorRow, ErrorText, ModelSilent
from a2a_frameworks.shared.status_words import find_status_words

__all__ = ["OPENAI_WORDS", "find_api_words", "find_cause_words"]

#: Codes of errors of the API and the words for clients.
CODES = {"insufficient_quota": ErrorText.UNUSABLE, "context_length_exceeded": ErrorText.TOO_LONG}
#: Other errors and the words for clients, the most particular first.
OPENAI_WORDS: tuple[ErrorRow, ...] = (
    (openai.APIResponseValidationError, ErrorText.UNFIT),
    ((openai.APIError, ModelSilent), ErrorText.SILENT),
    (openai.OpenAIError, ErrorText.UNUSABLE),  # there is no key
    (json.JSONDecodeError, ErrorText.UNFIT),
)


def find_api_words(fault: openai.APIStatusError) -> str:
    """Return the words for an answer that is an error."""
    return CODES.get(fault.code or "") or find_status_words(fault.status_code)


def find_cause_words(fault: BaseException | None) -> str:
    """Return the words for an error of the client, which a framework may have wrapped in others; empty = it is none."""
    while fault is not None:
        if isinstance(fault, openai.APIStatusError):
            return find_api_words(fault)
        for kinds, words in OPENAI_WORDS:
            if isinstance(fault, kinds):
                return words
        fault = fault.__cause__ or fault.__context__
    return ""
