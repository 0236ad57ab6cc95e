"""How the cache in Redis is written: as JSON. Django's own pickles, so that whoever writes to Redis could run code here."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["JSONSerializer"]


class JSONSerializer:
    """What Django's RedisCache asks of a serializer."""

    def dumps(self, value: Any) -> bytes | int:
        """Numbers stay what they are, so that Redis can count with them."""
        return value if type(value) is int else json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """What was written. Raises ValueError for anything that was not."""
        return json.loads(data)
