"""HPACK for a connection whose headers are nearly the same from call to call: what was once worked out is said and read again.

Source: RFC 7541. Written by the library hpack, which is half of what a call's headers cost without this (docs/decisions/0123).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from hpack import Decoder, Encoder, HeaderTuple, NeverIndexedHeaderTuple

__all__ = ["Reader", "Writer"]

#: A table of no bytes, told before the first headers (RFC 7541 §6.3).
NO_TABLE = b"\x20"
#: Headers that are kept: so many, from blocks of at most so many bytes.
KEPT, SHORT = 8, 256
#: More headers than any client sends with a call.
MANY = 100


class Writer(Encoder):
    """Writes headers without a table, so that the same ones are always the same bytes, and no client has it keep anything."""

    #: What the client would have it keep.
    header_table_size = 0

    def __init__(self) -> None:
        """For one connection."""
        super().__init__()
        self._before = NO_TABLE

    def encode(
        self,
        headers: Iterable[Any],
        huffman: bool = True,
    ) -> bytes:
        """Pairs of bytes, as they travel."""
        before, self._before = self._before, b""
        return before + b"".join([_literal(name, value) for name, value in headers])


@functools.lru_cache(maxsize=256)
def _literal(name: bytes, value: bytes) -> bytes:
    written: bytes = Encoder().encode([NeverIndexedHeaderTuple(name, value)])
    return written


class Reader(Decoder):
    """Reads a block as it read it before, as long as the table is as it was then."""

    def __init__(self) -> None:
        """For one connection."""
        super().__init__()
        self._known: dict[tuple[bytes, bool], list[HeaderTuple]] = {}
        #: Headers of all blocks that had many: a byte may stand for one, and each is work.
        self.many = 0

    def decode(self, data: bytes, raw: bool = False) -> list[HeaderTuple]:
        """The headers of a block. Raises hpack.HPACKError."""
        headers = self._decoded(data, raw)
        if len(headers) > MANY:
            self.many += len(headers)
        return headers

    def _decoded(self, data: bytes, raw: bool) -> list[HeaderTuple]:
        if (known := self._known.get((data, raw))) is not None:
            return known
        before = self._table()
        headers = list(super().decode(data, raw))
        if self._table() != before:
            self._known.clear()
        elif len(self._known) < KEPT and len(data) <= SHORT:
            self._known[data, raw] = headers
        return headers

    def _table(self) -> tuple[object, ...]:
        table = self.header_table
        return table.maxsize, *table.dynamic_entries
