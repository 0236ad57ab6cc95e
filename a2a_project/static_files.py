"""Static files by WhiteNoise, sent as complete responses.

WhiteNoise streams each file by a synchronous iterator, against which Django warns under ASGI, and which Django would
read to the end anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

__all__ = ["StaticFiles"]


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Middleware that serves the static files of all apps."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        """Make the directory of collected files, of which WhiteNoise warns if it is missing."""
        root: str | Path | None = settings.STATIC_ROOT  # another project may have none
        if root:
            Path(root).mkdir(parents=True, exist_ok=True)
        super().__init__(get_response)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return the file, or the part of it that the request asks for, with WhiteNoise's headers."""
        streamed = WhiteNoiseMiddleware.serve(static_file, request)
        body = b"".join(streamed.streaming_content)
        streamed.close()
        answer = HttpResponse(body, status=streamed.status_code)
        answer.headers = streamed.headers
        return answer
