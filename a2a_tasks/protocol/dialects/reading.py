"""Readers of members that several dialects spell alike: ids, parts, pages, push configs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from a2a_tasks.protocol.fields import Fields, camel, canonical_base64
from a2a_tasks.protocol.requests import DEFAULT_PAGE, MAX_PAGE
from a2a_tasks.protocol.values import Part, PushConfig, Role, TaskState

__all__ = [
    "COMPAT",
    "ENUM_STATES",
    "MAX_ID_LENGTH",
    "ROLES",
    "WORD_ROLES",
    "any_role",
    "base64_text",
    "enum_key",
    "identifier",
    "identity",
    "message_or_request",
    "page_size",
    "parts",
    "push_config",
    "read_tagged_part",
    "tenant",
    "read_wrapped_part",
]

MAX_ID_LENGTH = 256
MAX_PARTS = 1000
#: The types of parts, in the dialects with a discriminator.
TAGS = ("text", "file", "data")
#: Marks a data part whose value had to be wrapped in an object, for dialects that allow only objects.
COMPAT = "data_part_compat"

#: Enum members by name and by number; both are read (ProtoJSON), only names are written.
ROLES: Mapping[object, Role] = {
    "ROLE_USER": Role.USER,
    1: Role.USER,
    "ROLE_AGENT": Role.AGENT,
    2: Role.AGENT,
}
WORD_ROLES: Mapping[object, Role] = {"user": Role.USER, "agent": Role.AGENT}
_NUMBERED = [
    TaskState.SUBMITTED,
    TaskState.WORKING,
    TaskState.COMPLETED,
    TaskState.FAILED,
    TaskState.CANCELED,
    TaskState.INPUT_REQUIRED,
    TaskState.REJECTED,
    TaskState.AUTH_REQUIRED,
]
ENUM_STATES: Mapping[object, TaskState | None] = {
    **{key: state for n, state in enumerate(_NUMBERED, 1) for key in (state.value, n)},
    "TASK_STATE_UNSPECIFIED": None,
    0: None,
    "TASK_STATE_CANCELLED": TaskState.CANCELED,
}


def enum_key(value: object) -> object:
    """Return the value if it can be the name or number of an enum member, else None."""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def any_role(fields: Fields, expected: str) -> Role:
    """Read a role by its word, name or number; `expected` is the error message for other values."""
    role = enum_key(fields.value("role"))
    found = ROLES.get(role) or WORD_ROLES.get(role)
    if found is None:
        fields.bad("role", expected)
    return found or Role.USER


def identifier(fields: Fields, name: str, *, required: bool = False) -> str | None:
    """Read an id that a client may choose: at most 256 characters, no NUL."""
    found = fields.string(name, required=required, longest=MAX_ID_LENGTH)
    if found is not None and "\x00" in found:
        fields.bad(name, "must not hold NUL")
    return found


def identity(fields: Fields, name: str = "id") -> str:
    """Read the id of an object that must exist already; any text is allowed."""
    return fields.string(name, required=True) or ""


def tenant(fields: Fields) -> str:
    """Read the tenant of a request (A2A 1.0)."""
    return identifier(fields, "tenant") or ""


def page_size(fields: Fields) -> int:
    """Read the size of a page: 1 to 100, by default 50."""
    found = fields.integer("page_size")
    if found is not None and not 1 <= found <= MAX_PAGE:
        fields.bad("page_size", f"must be from 1 to {MAX_PAGE}")
    return DEFAULT_PAGE if found is None else found


def parts(fields: Fields, read: Callable[[Fields], Part], name: str = "parts") -> tuple[Part, ...]:
    """Read the parts of a message: at least one."""
    items = fields.value(name)
    if not items:
        fields.bad(name, "must have at least one part")
        return ()
    if isinstance(items, list) and len(items) > MAX_PARTS:
        fields.bad(name, f"must have at most {MAX_PARTS} parts")
        return ()
    return tuple(map(read, fields.objects(name)))


def message_or_request(fields: Fields) -> Fields | None:
    """Return the message of a send under its JSON name or its proto name."""
    name = "message" if fields.value("request") is None else "request"
    return fields.object(name, required=True)


def base64_text(fields: Fields, name: str, *, doubled: bool = False) -> str | None:
    """Read bytes as canonical base64; `doubled`: undo a second encoding, if there is one."""
    text = fields.string(name)
    if text is None:
        return "" if fields.value(name) == "" else None
    try:
        found = canonical_base64(text)
    except ValueError:
        fields.bad(name, "must be base64")
        return None
    return _once(found) if doubled else found


def _once(encoded: str) -> str:
    """Undo one encoding if the decoded bytes are themselves canonical base64."""
    inner = base64.b64decode(encoded)
    try:
        text = inner.decode("ascii")
        if text and base64.b64encode(base64.b64decode(text, validate=True)) == inner:
            return text
    except ValueError:
        pass
    return encoded


def _data(fields: Fields, found: object) -> Mapping[str, Any]:
    """Return the content of a data part whose value must be an object; the wrapping of other values is undone."""
    if not isinstance(found, Mapping):
        fields.bad("data", "must be an object")
        return {}
    metadata = fields.struct("metadata")
    if metadata and metadata.get(COMPAT) is True and set(found) == {"value"}:
        kept = {key: value for key, value in metadata.items() if key != COMPAT}
        return {"data": found["value"], "metadata": kept or None}
    return {"data": found, "metadata": metadata}


def _one_of(fields: Fields, names: tuple[str, ...]) -> str | None:
    found = [name for name in names if fields.value(name) is not None]
    if len(found) != 1:
        fields.violations.append(
            (fields.path, f"must have exactly one of {', '.join(map(camel, names))}")
        )
        return None
    return found[0]


def _text(fields: Fields) -> Part:
    found = fields.value("text")
    if not isinstance(found, str):
        fields.bad("text", "must be a string")
        found = ""
    return Part(text=found, metadata=fields.struct("metadata"))


def read_tagged_part(fields: Fields, tag: str) -> Part:
    """Read a part with a discriminator, `type` or `kind`; without one, the part must have only one content.

    Both names are read; `tag` is the dialect's own.
    """
    tags = [name for name in ("kind", "type") if fields.value(name) is not None]
    present = [kind for kind in TAGS if fields.value(kind) is not None]
    kinds = [fields.value(name) for name in tags] or present
    kind = kinds[0] if kinds else None
    if kind not in TAGS or any(other != kind for other in kinds):
        fields.bad(tag, "must be text, file or data")
        return Part(text="")
    if any(other != kind for other in present):
        fields.violations.append((fields.path, "must have exactly one of text, file, data"))
        return Part(text="")
    if kind == "text":
        return _text(fields)
    if kind == "data":
        return Part(**_data(fields, fields.value("data")))
    return _file(fields, "bytes", "uri", "mime_type")


def read_wrapped_part(fields: Fields, media_type: str, *, doubled: bool = False) -> Part:
    """Read a part without discriminator, whose files and data are wrapped once more (the draft; 0.3 as ProtoJSON)."""
    match _one_of(fields, ("text", "file", "data")):
        case "text":
            return _text(fields)
        case "data":
            inner = fields.object("data")
            return Part(**_data(fields, inner.value("data") if inner else {}))
        case "file":
            return _file(fields, "file_with_bytes", "file_with_uri", media_type, doubled=doubled)
    return Part(text="")


def _file(
    fields: Fields, by_value: str, by_reference: str, media_type: str, *, doubled: bool = False
) -> Part:
    file = fields.object("file", required=True)
    if file is None:
        return Part(text="")
    if by_value == "bytes" and not file.has("bytes") and file.has("data"):
        by_value = "data"  # the name in old examples
    name = _one_of(file, (by_value, by_reference))
    content: dict[str, Any] = {}
    if name == by_value:
        content = {"raw": base64_text(file, by_value, doubled=doubled) or ""}
    elif name == by_reference:
        content = {"url": file.string(by_reference, required=True) or ""}
    return Part(
        **content,
        filename=file.string("name"),
        media_type=file.string(media_type),
        metadata=fields.struct("metadata"),
    )


def _schemes(fields: Fields) -> tuple[str, ...]:
    found = fields.value("schemes")
    if isinstance(found, str):  # an old sample has a bare string
        return (found,)
    return fields.strings("schemes")


def push_config(fields: Fields, dialect: str, *, task_id: str = "") -> PushConfig:
    """Read a PushNotificationConfig of 0.0 to the draft."""
    authentication = fields.object("authentication")
    return PushConfig(
        url=fields.string("url", required=True) or "",
        id=identifier(fields, "id") or "",
        task_id=task_id,
        token=fields.string("token") or "",
        schemes=_schemes(authentication) if authentication else (),
        credentials=(authentication.string("credentials") if authentication else None) or "",
        dialect=dialect,
        path=fields.path,
    )
