"""JSON in, parsed by the host's own reader, and JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

from a2a_tasks.conf import conf
from a2a_tasks.protocol import jsontext
from a2a_tasks.protocol.errors import TooLarge

__all__ = ["HostJSONParser", "HostJSONRenderer"]

#: The largest body in bytes: room for a thousand ids.
MAX_BYTES = 256 * 1024


class HostJSONParser(BaseParser):
    """A parser with the depth limit of the protocol's bindings, and a size limit of its own."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the document; an empty body is `{}`. Raises TooLarge, ParseError, InvalidParams."""
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise TooLarge(f"The body is larger than {MAX_BYTES} bytes")
        return jsontext.read(body, max_depth=int(conf.MAX_JSON_DEPTH)) if body else {}


class HostJSONRenderer(JSONRenderer):
    """JSON in ASCII: half a surrogate pair from an agent can be written only as an escape."""

    ensure_ascii = compact = strict = True
