"""Fields of a JSON object, read one by one by the rules of ProtoJSON (A2A 1.0 §5.5, §5.7).

camelCase and the original snake_case are both read, null is absent, unknown members are ignored. Every bad field is
recorded with its path; `check` raises them together.
"""

from __future__ import annotations

import base64
import datetime
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from a2a_tasks.protocol.errors import InvalidParams

__all__ = ["Fields", "canonical_base64", "camel", "rfc3339"]

_INTEGER = re.compile(r"-?\d{1,10}", re.ASCII)
_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
INT32 = 2**31


@functools.cache
def camel(name: str) -> str:
    """Return a name in camelCase: `page_size` -> `pageSize`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def rfc3339(moment: datetime.datetime) -> str:
    """Return the time in UTC with milliseconds: `2026-11-20T12:00:00.000Z` (A2A 1.0 §5.6.1)."""
    utc = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def parse_rfc3339(text: str) -> datetime.datetime:
    """Return the time, to the microsecond. Raises ValueError."""
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(text)
    head, dot, tail = text.upper().partition(".")
    if dot:
        digits = re.match(r"\d+", tail)
        assert digits  # noqa: S101 - the pattern above guarantees it
        text = f"{head}.{digits[0][:6]:0<6}{tail[digits.end() :]}"
    return datetime.datetime.fromisoformat(text.upper().replace("Z", "+00:00"))


def canonical_base64(text: str) -> str:
    """Return the content of `text` (base64: standard or URL-safe, padded or not) as standard padded base64."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    padded = plain + "=" * (-len(plain) % 4)
    if len(text) - len(plain) > 2:  # noqa: PLR2004 - no padding is longer
        raise ValueError("not base64")
    try:
        decoded = base64.b64decode(padded, validate=True)
    except ValueError:
        raise ValueError("not base64") from None
    return padded if padded == text else base64.b64encode(decoded).decode()


class Fields:
    """The fields of one object of a request. Accessors record a bad field and return a harmless default."""

    def __init__(
        self,
        members: Mapping[str, Any],
        path: str = "",
        violations: list[tuple[str, str]] | None = None,
    ) -> None:
        self.members, self.path = members, path
        self.violations = [] if violations is None else violations

    @classmethod
    def of(cls, value: Any, path: str = "") -> Fields:
        """Return the fields of `value`. Raises InvalidParams if it is not an object."""
        if not isinstance(value, Mapping):
            raise InvalidParams.field(path or "params", "must be an object")
        return cls(value, path)

    def check(self) -> None:
        """Raise InvalidParams with all recorded violations, if there are any."""
        if self.violations:
            raise InvalidParams(violations=self.violations)

    def where(self, name: str) -> str:
        """Return the path of a field: `message.parts`."""
        return f"{self.path}.{camel(name)}" if self.path else camel(name)

    def bad(self, name: str, description: str) -> None:
        """Record a violation."""
        self.violations.append((self.where(name), description))

    def value(self, name: str) -> Any:
        """Return the member under either spelling, or None."""
        found = self.members.get(camel(name))
        return self.members.get(name) if found is None else found

    def has(self, name: str) -> bool:
        """Return whether the member exists, even as null."""
        return camel(name) in self.members or name in self.members

    def string(self, name: str, *, required: bool = False, longest: int = 0) -> str | None:
        """Return a string; an empty one counts as absent."""
        found = self.value(name)
        if found is None or found == "":
            if required:
                self.bad(name, "is required")
            return None
        if not isinstance(found, str):
            self.bad(name, "must be a string")
            return None
        if longest and len(found) > longest:
            self.bad(name, f"must be at most {longest} characters")
            return None
        return found

    def integer(self, name: str) -> int | None:
        """Return an int32: a number without fraction or its decimal string."""
        found = self.value(name)
        if found is None:
            return None
        if isinstance(found, str) and _INTEGER.fullmatch(found):
            found = int(found)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not -INT32 <= found < INT32:
            self.bad(name, "must be a 32-bit integer")
            return None
        return found

    def length(self, name: str) -> int | None:
        """Return a count: an int32 that is not negative."""
        found = self.integer(name)
        if found is not None and found < 0:
            self.bad(name, "must not be negative")
            return None
        return found

    def boolean(self, name: str) -> bool | None:
        """Return true or false; values that merely resemble them are violations."""
        found = self.value(name)
        if found is not None and not isinstance(found, bool):
            self.bad(name, "must be true or false")
            return None
        return found

    def struct(self, name: str) -> Mapping[str, Any] | None:
        """Return a free JSON object (google.protobuf.Struct)."""
        found = self.value(name)
        if found is not None and not isinstance(found, Mapping):
            self.bad(name, "must be an object")
            return None
        return found

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        found = self.value(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            self.bad(name, "must be a list of strings")
            return ()
        return tuple(found)

    def timestamp(self, name: str) -> str | None:
        """Return an RFC 3339 time, in UTC with milliseconds."""
        found = self.string(name)
        if found is None:
            return None
        try:
            return rfc3339(parse_rfc3339(found))
        except (ValueError, OverflowError):
            self.bad(name, "must be an RFC 3339 timestamp")
            return None

    def object(self, name: str, *, required: bool = False) -> Fields | None:
        """Return a nested object; its violations are recorded here."""
        found = self.value(name)
        if found is None:
            if required:
                self.bad(name, "is required")
            return None
        if not isinstance(found, Mapping):
            self.bad(name, "must be an object")
            return None
        return Fields(found, self.where(name), self.violations)

    def objects(self, name: str) -> Iterator[Fields]:
        """Yield the objects of a list."""
        found = self.value(name)
        if not isinstance(found, list):
            if found is not None:
                self.bad(name, "must be a list")
            return
        for index, item in enumerate(found):
            where = f"{self.where(name)}[{index}]"
            if isinstance(item, Mapping):
                yield Fields(item, where, self.violations)
            else:
                self.violations.append((where, "must be an object"))
