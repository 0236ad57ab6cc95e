"""Which dialect does a request speak? The decision tables, row by row, as data.

At a pinned mount the mount decides. At a detecting mount a JSON-RPC request is decided by its method, then by the
version it asks for, then by marks in its parameters; an HTTP+JSON request by its path in the place of the method.
Where nothing tells, the dialect in which the task was made does: the answer is then None until it is known.
`docs/protocol-support.md` explains the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from a2a_tasks.protocol.dialects import Switches
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.protocol.fields import camel
from a2a_tasks.protocol.mounts import Mount
from a2a_tasks.protocol.versions import unsupported

__all__ = [
    "CALLS",
    "ROUTES",
    "UNMARKED",
    "Asked",
    "Row",
    "admit",
    "below_v1",
    "by_call",
    "by_route",
    "is_draft",
    "is_final",
    "reads_body",
    "task_named",
    "voice",
    "voice_of_route",
]

OLDEST = ("s0", "v00", "v01")
#: Parameters that are the same in 1.0 and its draft: most requests have no others.
UNMARKED = {"id", "historyLength", "history_length"}
MEDIA_1_0 = "application/a2a+json"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What of a request decides."""

    #: Method of JSON-RPC, or path below the mount, without slash at its ends.
    method: str
    params: Mapping[str, Any]
    #: As `versions.read_version` returns it.
    version: str = ""
    #: Dialect in which the task was made; empty = there is none, None = not looked up yet.
    origin: str | None = None
    #: Content-Type and Accept (HTTP+JSON).
    media: str = ""

    def says(self, name: str) -> Any:
        """A parameter under either spelling."""
        return _member(self.params, name)


@dataclass(frozen=True)
class Row:
    """One row of a table: its number, the methods (or paths) it is about, and what it decides."""

    number: str
    methods: frozenset[str]
    #: Code of the dialect; None = it depends on the origin of the task.
    decide: Callable[[Asked], str | None]
    #: Methods that 1.0 does not have are refused to those who ask for 1.0.
    legacy: bool = False


# -- marks in the parameters -----------------------------------------------------------------------------------------


def _member(of: object, name: str) -> Any:
    if not isinstance(of, dict):
        return None
    found = of.get(camel(name))
    return of.get(name) if found is None else found


def _parts(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = _member(_message(params), "parts")
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def _message(params: Mapping[str, Any]) -> Any:
    found = params.get("message")
    return params.get("request") if found is None else found


def _authentications(params: Mapping[str, Any]) -> list[Any]:
    configuration = _member(params, "configuration")
    inner = [
        _member(configuration, "task_push_notification_config"),
        _member(configuration, "push_notification_config"),
        _member(params, "push_notification_config"),
    ]
    return [_member(one, "authentication") for one in (params, *inner)]


def _final_part(part: Mapping[str, Any]) -> bool:
    if any(_member(part, name) is not None for name in ("raw", "url", "filename", "media_type")):
        return True
    return part.get("data") is not None and not isinstance(part["data"], dict)


def is_final(params: Mapping[str, Any]) -> bool:
    """Does a mark of 1.0 stand in the parameters?"""
    configuration = _member(params, "configuration")
    task_id = _member(params, "task_id") is not None
    return (
        _member(_message(params), "role") in ("ROLE_USER", "ROLE_AGENT")
        or str(params.get("status")).startswith("TASK_STATE_")
        or any(map(_final_part, _parts(params)))
        or _member(configuration, "task_push_notification_config") is not None
        or _member(configuration, "return_immediately") is not None
        or _member(params, "status_timestamp_after") is not None
        or params.get("tenant") is not None
        or (task_id and (params.get("id") is not None or isinstance(params.get("url"), str)))
        or any(_member(one, "scheme") is not None for one in _authentications(params))
    )


def is_draft(params: Mapping[str, Any], *, final: bool) -> bool:
    """Does a mark of the draft stand in the parameters? A wrapped data part is one only where none of 1.0 is."""
    configuration = _member(params, "configuration")
    status, name = params.get("status"), params.get("name")
    return (
        _member(_message(params), "role") in ("user", "agent")
        or (isinstance(status, str) and bool(status) and not status.startswith("TASK_STATE_"))
        or any(isinstance(part.get("file"), dict) for part in _parts(params))
        or (not final and any(map(_wrapped_data, _parts(params))))
        or _member(configuration, "push_notification_config") is not None
        or _member(configuration, "blocking") is not None
        or _member(params, "last_updated_after") is not None
        or (isinstance(name, str) and name.startswith("tasks/"))
        or any(_member(params, mark) is not None for mark in ("parent", "config_id", "config"))
        or any(_member(one, "schemes") is not None for one in _authentications(params))
        or params.get("request") is not None
    )


def _wrapped_data(part: Mapping[str, Any]) -> bool:
    inner = part.get("data")
    return (
        set(part) <= {"data", "metadata"}
        and isinstance(inner, dict)
        and set(inner) == {"data"}
        and isinstance(inner["data"], dict)
    )


def _final_or_draft(asked: Asked) -> str | None:
    """1.0 or its draft: marks first, then the version, then the task."""
    marked = not asked.params.keys() <= UNMARKED
    final = marked and is_final(asked.params)
    draft = marked and is_draft(asked.params, final=final)
    if final != draft:
        return "v10" if final else "dr"
    if asked.version == "0.3":
        return "dr"
    if final or asked.version == "1.0" or task_named(asked.params) == "":
        return "v10"
    return None if asked.origin is None else "dr" if asked.origin == "dr" else "v10"


def task_named(params: Mapping[str, Any]) -> str:
    """The id of the task that parameters are about, if they say one plainly."""
    found = _member(params, "task_id") or params.get("id")
    return found if isinstance(found, str) else ""


# -- JSON-RPC --------------------------------------------------------------------------------------------------------


def _push_set(asked: Asked) -> str | None:
    flat = isinstance(asked.says("url"), str) and asked.says("push_notification_config") is None
    return "s0" if flat else _v01(asked)


def _push_get(asked: Asked) -> str | None:
    if asked.says("session_id") is not None:
        return "s0"
    if asked.origin is None:
        return None
    return "s0" if asked.origin == "s0" else _v01(asked)


def _v01(asked: Asked) -> str:
    return "v00" if asked.version == "0.0" else "v01"


def _v03(asked: Asked) -> str:
    return "v02" if asked.version == "0.2" else "v03"


def _shared(asked: Asked) -> str | None:
    """`tasks/get`, `tasks/cancel`, `tasks/resubscribe`: five dialects have them."""
    if asked.version in {"0.3", "0.2"}:
        return _v03(asked)
    if asked.version in {"0.1", "0.0"}:
        return _v01(asked)
    if asked.says("session_id") is not None and asked.method != "tasks/resubscribe":
        return "s0"  # which cannot resubscribe
    if asked.origin is None:
        return None
    if asked.origin == "s0" and asked.method == "tasks/resubscribe":
        return "v01"
    return asked.origin if asked.origin in OLDEST else "v03"


def _always(code: str) -> Callable[[Asked], str | None]:
    return lambda asked: code


#: Rows J2 to J11; J0 is the pinned mount, J1 the version nobody speaks, J12 the unknown method.
CALLS: tuple[Row, ...] = (
    Row("J2", frozenset({"agent/getCard"}), _always("s0"), legacy=True),
    Row("J3", frozenset({"tasks/send", "tasks/sendSubscribe"}), _v01, legacy=True),
    Row("J4", frozenset({"tasks/pushNotification/set"}), _push_set, legacy=True),
    Row("J5", frozenset({"tasks/pushNotification/get"}), _push_get, legacy=True),
    Row(
        "J6",
        frozenset(
            {
                "message/send",
                "message/stream",
                "tasks/pushNotificationConfig/set",
                "tasks/pushNotificationConfig/get",
                "tasks/pushNotificationConfig/list",
                "tasks/pushNotificationConfig/delete",
                "agent/getAuthenticatedExtendedCard",
                "agent/authenticatedExtendedCard",
            }
        ),
        _v03,
        legacy=True,
    ),
    Row("J7", frozenset({"tasks/get", "tasks/cancel", "tasks/resubscribe"}), _shared, legacy=True),
    Row("J8", frozenset({"tasks/list"}), _always("v03"), legacy=True),
    Row(
        "J9",
        frozenset({"SetTaskPushNotificationConfig", "ListTaskPushNotificationConfig"}),
        _always("dr"),
    ),
    Row(
        "J10",
        frozenset({"CreateTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"}),
        _always("v10"),
    ),
    Row(
        "J11",
        frozenset(
            {
                "SendMessage",
                "SendStreamingMessage",
                "GetTask",
                "ListTasks",
                "CancelTask",
                "SubscribeToTask",
                "GetTaskPushNotificationConfig",
                "DeleteTaskPushNotificationConfig",
                "GetExtendedAgentCard",
            }
        ),
        _final_or_draft,
    ),
)
_BY_METHOD = {method: row for row in CALLS for method in row.methods}


def admit(mount: Mount, version: str) -> None:
    """Raise VersionNotSupported if a pinned mount does not take the version (row J0)."""
    if mount.dialect and version and version not in mount.admits:
        raise unsupported(version, mount.admits)


def _pinned(mount: Mount, asked: Asked, switches: Switches) -> str:
    """The dialect of a pinned mount. Raises VersionNotSupported."""
    admit(mount, asked.version)
    if mount.dialect == "v10" and switches.strict_version and not asked.version:
        # what an absent version means by A2A 1.0 §3.6.2
        raise unsupported("0.3", mount.admits)
    return mount.dialect


def voice(mount: Mount, method: str = "", params: object = None) -> str:
    """The dialect in which a refusal is told before the request's own is settled."""
    if mount.dialect:
        return mount.dialect
    if "/" in method:
        return "v03"
    said = params if isinstance(params, dict) else {}
    final = is_final(said)
    return "dr" if not final and is_draft(said, final=final) else "v10"


def by_call(mount: Mount, asked: Asked, switches: Switches) -> str | None:
    """The dialect of a JSON-RPC request; None = ask again with the origin of its task.

    Raises VersionNotSupported, MethodNotFound.
    """
    if mount.dialect:
        return _pinned(mount, asked, switches)
    row = _BY_METHOD.get(asked.method)
    if row is None:
        raise MethodNotFound
    if row.legacy and asked.version == "1.0":
        if not switches.legacy_method_with_1_0:
            raise MethodNotFound
        asked = replace(asked, version="")
    if not row.legacy and switches.strict_version:
        if asked.version != "1.0":
            raise unsupported(asked.version or "0.3")
        return "v10"
    return row.decide(asked)


# -- HTTP+JSON -------------------------------------------------------------------------------------------------------


def _v03_send(asked: Asked) -> str | None:
    """`POST /v1/message:send` and `:stream`."""
    message = _message(asked.params)
    role, parts = _member(message, "role"), _member(message, "parts")
    if _speaks_03(asked.params):
        return "v03"
    if parts is not None:
        return "v10" if role in ("ROLE_USER", "ROLE_AGENT") else "dr"
    return _by_media(asked)


def _speaks_03(params: Mapping[str, Any]) -> bool:
    message = _message(params)
    configuration = _member(params, "configuration")
    files = [part.get("file") for part in _parts(params)]
    return (
        "request" in params
        or _member(message, "content") is not None
        or _member(message, "kind") is not None
        or any(map(_snake, (params, message, configuration)))
        or any("kind" in part or "type" in part for part in _parts(params))
        or any(
            _member(file, name) is not None
            for file in files
            for name in ("mime_type", "bytes", "uri")
        )
        or _member(configuration, "push_notification") is not None
    )


def _snake(of: object) -> bool:
    return isinstance(of, dict) and any("_" in key for key in of)


def _by_media(asked: Asked) -> str:
    named = MEDIA_1_0 in asked.media.lower()
    return "dr" if named or asked.version == "1.0" else "v03"


def _v1_task(asked: Asked) -> str | None:
    """Other paths below `/v1/tasks`."""
    if _by_media(asked) == "dr":
        return "dr"
    if asked.origin is None:
        return None
    return "dr" if asked.origin == "dr" else "v03"


#: Rows of the paths below `/v1`; every other path is 1.0's, but for 0.2's extended card.
ROUTES: tuple[Row, ...] = (
    Row("H1", frozenset({"agent/authenticatedExtendedCard"}), _always("v02")),
    Row("H2", frozenset({"v1/card", "v1/agent/authenticatedExtendedCard"}), _always("v03")),
    Row("H3", frozenset({"v1/extendedAgentCard", "v1/tasks/list"}), _always("dr")),
    Row("H4", frozenset({"v1/tasks"}), _always("dr")),
    Row("H5", frozenset({"v1/message:send", "v1/message:stream"}), _v03_send),
)
_BY_PATH = {path: row for row in ROUTES for path in row.methods}
#: Every other path below `/v1`.
BELOW = Row("H6", frozenset({"v1/*"}), _v1_task)


def reads_body(path: str) -> bool:
    """Does the body tell which dialect is spoken at this path?"""
    return path in {"v1/message:send", "v1/message:stream"}


def voice_of_route(mount: Mount, path: str) -> str:
    """The dialect in which a refusal is told before the request's own is settled; empty = either below `/v1`."""
    if mount.dialect:
        return mount.dialect
    row = _BY_PATH.get(path)
    if row is None or row.number == "H5":
        return "" if path == "v1" or path.startswith("v1/") else "v10"
    return row.decide(Asked(method=path, params={})) or ""


def by_route(mount: Mount, asked: Asked, switches: Switches) -> str | None:
    """The dialect of an HTTP+JSON request; None = ask again with the origin of its task.

    Raises VersionNotSupported.
    """
    if mount.dialect:
        return _pinned(mount, asked, switches)
    row = _BY_PATH.get(asked.method)
    if row is None and (asked.method == "v1" or asked.method.startswith("v1/")):
        row = BELOW
    if row is not None:
        return row.decide(asked)
    if switches.strict_version and asked.version != "1.0":
        raise unsupported(asked.version or "0.3")
    if asked.version in {"0.0", "0.1", "0.2"}:
        raise unsupported(asked.version)  # none of them has these paths
    return "v10"


def below_v1(mount: Mount, segments: Sequence[str], code: str) -> list[str]:
    """The path by the dialect's own routes: a client of 1.0 may have glued a base URL that ends in `/v1`."""
    glued = not mount.dialect and code == "v10" and segments[:1] == ["v1"]
    return list(segments[1:] if glued else segments)
