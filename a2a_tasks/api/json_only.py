"""JSON in, by the host's one door for it, and JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from a2a_tasks.conf import conf
from a2a_tasks.protocol import jsontext
from a2a_tasks.protocol.errors import TooLarge

__all__ = ["JSONBody", "JSONOnly"]

#: Longest body, in bytes: a thousand ids have room.
LONGEST = 256 * 1024


class JSONBody(BaseParser):
    """Bodies by the host's one door for JSON."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The document. Raises TooLarge, ParseError, InvalidParams."""
        body = stream.read(LONGEST + 1)
        if len(body) > LONGEST:
            raise TooLarge(f"The body is larger than {LONGEST} bytes")
        return jsontext.read(body, max_depth=int(conf.MAX_JSON_DEPTH)) if body else {}


class JSONOnly(BaseContentNegotiation):
    """Answers are JSON, whatever is asked for: no client is helped by a refusal."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """The parser for the body's type, if there is one."""
        said = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == said), None)

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[Any, str]:
        """The first one."""
        return renderers[0], renderers[0].media_type
