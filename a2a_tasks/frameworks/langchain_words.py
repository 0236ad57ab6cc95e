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

from a2a_tasks.frameworks.model_call import Words

__all__ = ["LANGCHAIN_WORDS", "Row"]

#: Errors, and the words for clients.
Row = tuple[type[Exception] | tuple[type[Exception], ...], str]
#: The most specific first.
LANGCHAIN_WORDS: tuple[Row, ...] = (
    (ModelRateLimitError, Words.BUSY),
    ((ModelAuthenticationError, ModelPermissionDeniedError, ModelNotFoundError), Words.UNUSABLE),
    (ContextOverflowError, Words.TOO_LONG),
    (ModelInvalidRequestError, Words.REFUSED_REQUEST),
    ((ModelAPIError, ModelConnectionError, ModelTimeoutError), Words.SILENT),
    (ModelRefusalError, Words.REFUSED),
    ((ModelError, OutputParserException), Words.UNFIT),
)
