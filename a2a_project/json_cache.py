"""The serializer of the cache in Redis: JSON.

Django's own pickles would let anyone with access to Redis run code here.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["JSONSerializer"]


class JSONSerializer:
    """A serializer for Django's RedisCache."""

    def dumps(self, value: Any) -> bytes | int:
        """Encode a value. Integers stay unchanged, so that Redis can count with them."""
        return value if type(value) is int else json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Decode a value. Raises ValueError for invalid data."""
        return json.loads(data)
