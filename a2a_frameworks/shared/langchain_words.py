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

from a2a_frameworks.shared.model_call import ErrorRow, ErrorText

__all__ = ["LANGCHAIN_WORDS"]

#: The most specific first.
LANGCHAIN_WORDS: tuple[ErrorRow, ...] = (
    (ModelRateLimitError, ErrorText.BUSY),
    (
        (ModelAuthenticationError, ModelPermissionDeniedError, ModelNotFoundError),
        ErrorText.UNUSABLE,
    ),
    (ContextOverflowError, ErrorText.TOO_LONG),
    (ModelInvalidRequestError, ErrorText.REFUSED_REQUEST),
    ((ModelAPIError, ModelConnectionError, ModelTimeoutError), ErrorText.SILENT),
    (ModelRefusalError, ErrorText.REFUSED),
    ((ModelError, OutputParserException), ErrorText.UNFIT),
)
