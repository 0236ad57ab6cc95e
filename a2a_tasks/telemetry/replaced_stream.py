"""The part of a text stream that its replacement leaves as it was."""

from __future__ import annotations

import io
from typing import Any, TextIO

__all__ = ["ReplacedStream"]


class ReplacedStream(io.TextIOBase):
    """A text stream in place of another one. Subclasses write."""

    def __init__(self, stream: TextIO) -> None:
        """Replace `stream`, but keep its file descriptor."""
        self._stream = stream

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the replaced stream, for child processes."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the replaced stream."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """The handling of characters that the replaced stream cannot encode."""
        return self._stream.errors

    @property
    def buffer(self) -> Any:
        """The bytes of the replaced stream; those written there do not pass here."""
        return self._stream.buffer
