"""Static files: WhiteNoise's, as whole responses.

WhiteNoise streams each file by a synchronous iterator, of which Django warns under ASGI. It would read all of it first as well.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

__all__ = ["StaticFiles"]


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Serves the static files of all apps."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return the file, or the part of it that the request asks for, with WhiteNoise's headers."""
        streamed = WhiteNoiseMiddleware.serve(static_file, request)
        body = b"".join(streamed.streaming_content)
        streamed.close()
        answer = HttpResponse(body, status=streamed.status_code)
        answer.headers = streamed.headers
        return answer
