"""Errors of models that LangChain calls, in words for people."""

from __future__ import annotations

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelRefusalError,
    ModelTimeoutError,
    OutputParserException,
)

from a2a_frameworks.shared.model_call import ErrorRow, Words

__all__ = ["LANGCHAIN_WORDS"]

#: The most specific first.
LANGCHAIN_WORDS: tuple[ErrorRow, ...] = (
    (ModelRateLimitError, Words.BUSY),
    ((ModelAuthenticationError, ModelPermissionDeniedError, ModelNotFoundError), Words.UNUSABLE),
    (ContextOverflowError, Words.TOO_LONG),
    (ModelInvalidRequestError, Words.REFUSED_REQUEST),
    ((ModelAPIError, ModelConnectionError, ModelTimeoutError), Words.SILENT),
    (ModelRefusalError, Words.REFUSED),
    ((ModelError, OutputParserException), Words.UNFIT),
)
