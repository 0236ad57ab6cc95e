"""Detection of the dialect of a request: the decision tables, row by row, as data.

At a pinned mount the mount decides. At a detecting mount, a JSON-RPC request is decided by its method, then by the
requested version, then by marks in its parameters; for an HTTP+JSON request the path takes the place of the method.
Without any mark, the dialect in which the task was made decides; the result is None until that is known.
`docs/reference/protocol-support.md` explains the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from a2a_tasks.protocol.dialects import CompatOptions
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.protocol.fields import camel
from a2a_tasks.protocol.mounts import Mount
from a2a_tasks.protocol.versions import refuse_version

__all__ = [
    "CALLS",
    "ROUTES",
    "UNMARKED",
    "DetectionInput",
    "Rule",
    "admit",
    "below_v1",
    "by_call",
    "by_route",
    "is_draft",
    "is_final",
    "reads_body",
    "task_id_of",
    "error_dialect",
    "error_dialect_of_route",
]

OLDEST = ("s0", "v00", "v01")
#: Parameters that are equal in 1.0 and its draft: most requests have no others.
UNMARKED = {"id", "historyLength", "history_length"}
MEDIA_1_0 = "application/a2a+json"


@dataclass(frozen=True, kw_only=True)
class DetectionInput:
    """The properties of a request that decide its dialect."""

    #: Method of JSON-RPC, or path below the mount, without a slash at either end.
    method: str
    params: Mapping[str, Any]
    #: As `versions.read_version` returns it.
    version: str = ""
    #: Dialect in which the task was made; empty = there is no task, None = not looked up yet.
    origin: str | None = None
    #: Content-Type and Accept (HTTP+JSON).
    media: str = ""

    def param(self, name: str) -> Any:
        """Return a parameter under either spelling."""
        return _member(self.params, name)


@dataclass(frozen=True)
class Rule:
    """One row of a table: its number, its methods (or paths), and its decision."""

    number: str
    methods: frozenset[str]
    #: Code of the dialect; None = the decision depends on the origin of the task.
    decide: Callable[[DetectionInput], str | None]
    #: True if 1.0 does not have these methods: they are refused to clients that ask for 1.0, unless the operator lets
    #: them be served.
    legacy: bool = False


# -- marks in the parameters -----------------------------------------------------------------------------------------


def _spell(*names: str) -> frozenset[str]:
    """Return the names in both spellings."""
    return frozenset({*names, *map(camel, names)})


#: Marks of 1.0: members of the configuration, of the parameters, and of a part.
FINAL_CONFIGURATION = _spell("task_push_notification_config", "return_immediately")
FINAL_PARAMS = _spell("status_timestamp_after", "tenant")
FINAL_PART = _spell("raw", "url", "filename", "media_type")
#: Marks of the draft.
DRAFT_CONFIGURATION = _spell("push_notification_config", "blocking")
DRAFT_PARAMS = _spell("last_updated_after", "parent", "config_id", "config", "request")
#: Members with the configuration of a webhook, in which the form of the authentication is a mark.
PUSH = _spell("task_push_notification_config", "push_notification_config")
#: Members of a part without marks.
TEXT = frozenset({"text", "metadata"})


def _member(of: object, name: str) -> Any:
    if not isinstance(of, dict):
        return None
    found = of.get(camel(name))
    return of.get(name) if found is None else found


def _has(of: object, names: frozenset[str]) -> bool:
    """Return whether an object has a member of one of these names that is not null."""
    if not isinstance(of, dict) or names.isdisjoint(of):
        return False
    return any(of[name] is not None for name in names & of.keys())


def _parts(message: object) -> list[Mapping[str, Any]]:
    found = _member(message, "parts")
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def _message(params: Mapping[str, Any]) -> Any:
    found = params.get("message")
    return params.get("request") if found is None else found


def _authentications(params: Mapping[str, Any], configuration: object) -> list[Any]:
    """Return what may be the authentication of a webhook."""
    inner: list[Any] = [params]
    if _has(configuration, PUSH):
        inner += [
            _member(configuration, "task_push_notification_config"),
            _member(configuration, "push_notification_config"),
        ]
    if _has(params, PUSH):
        inner.append(_member(params, "push_notification_config"))
    return [
        one["authentication"] for one in inner if isinstance(one, dict) and "authentication" in one
    ]


class _Marked(NamedTuple):
    """The places in the parameters where marks may be."""

    params: Mapping[str, Any]
    role: Any
    #: Parts that are not plain text.
    parts: list[Mapping[str, Any]]
    configuration: Any
    authentications: list[Any]


def _read_marked(params: Mapping[str, Any]) -> _Marked:
    message, configuration = _message(params), params.get("configuration")
    return _Marked(
        params,
        message.get("role") if isinstance(message, dict) else None,
        [part for part in _parts(message) if not part.keys() <= TEXT],
        configuration,
        _authentications(params, configuration),
    )


def _final_part(part: Mapping[str, Any]) -> bool:
    data = part.get("data")
    return _has(part, FINAL_PART) or not (data is None or isinstance(data, dict))


def is_final(params: Mapping[str, Any]) -> bool:
    """Return whether the parameters contain a mark of 1.0."""
    return _is_final(_read_marked(params))


def _is_final(marked: _Marked) -> bool:
    params = marked.params
    return (
        marked.role in ("ROLE_USER", "ROLE_AGENT")
        or str(params.get("status")).startswith("TASK_STATE_")
        or any(map(_final_part, marked.parts))
        or _has(marked.configuration, FINAL_CONFIGURATION)
        or _has(params, FINAL_PARAMS)
        or (
            _member(params, "task_id") is not None
            and (params.get("id") is not None or isinstance(params.get("url"), str))
        )
        or any(map(_has_scheme, marked.authentications))
    )


def is_draft(params: Mapping[str, Any], *, final: bool) -> bool:
    """Return whether the parameters contain a mark of the draft.

    Wrapped data counts only if no mark of 1.0 is there.
    """
    return _is_draft(_read_marked(params), final=final)


def _is_draft(marked: _Marked, *, final: bool) -> bool:
    params = marked.params
    status, name = params.get("status"), params.get("name")
    return (
        marked.role in ("user", "agent")
        or (isinstance(status, str) and bool(status) and not status.startswith("TASK_STATE_"))
        or any(map(_has_file, marked.parts))
        or (not final and any(map(_has_wrapped_data, marked.parts)))
        or _has(marked.configuration, DRAFT_CONFIGURATION)
        or _has(params, DRAFT_PARAMS)
        or (isinstance(name, str) and name.startswith("tasks/"))
        or any(map(_has_schemes, marked.authentications))
    )


def _has_scheme(authentication: object) -> bool:
    return _member(authentication, "scheme") is not None


def _has_schemes(authentication: object) -> bool:
    return _member(authentication, "schemes") is not None


def _has_file(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("file"), dict)


def _has_wrapped_data(part: Mapping[str, Any]) -> bool:
    inner = part.get("data")
    return (
        set(part) <= {"data", "metadata"}
        and isinstance(inner, dict)
        and set(inner) == {"data"}
        and isinstance(inner["data"], dict)
    )


def _final_or_draft(call: DetectionInput) -> str | None:
    """Decide between 1.0 and its draft: marks first, then the version, then the task."""
    final = draft = False
    if not call.params.keys() <= UNMARKED:
        marked = _read_marked(call.params)
        final = _is_final(marked)
        draft = _is_draft(marked, final=final)
    if final != draft:
        return "v10" if final else "dr"
    if call.version == "0.3":
        return "dr"
    if final or call.version == "1.0" or task_id_of(call.params) == "":
        return "v10"
    return None if call.origin is None else "dr" if call.origin == "dr" else "v10"


def task_id_of(params: Mapping[str, Any]) -> str:
    """Return the id of the task that the parameters name in `task_id` or `id`; empty if they name none."""
    found = _member(params, "task_id") or params.get("id")
    return found if isinstance(found, str) else ""


# -- JSON-RPC --------------------------------------------------------------------------------------------------------


def _push_set(call: DetectionInput) -> str | None:
    flat = isinstance(call.param("url"), str) and call.param("push_notification_config") is None
    return "s0" if flat else _v01(call)


def _push_get(call: DetectionInput) -> str | None:
    if call.param("session_id") is not None:
        return "s0"
    if call.origin is None:
        return None
    return "s0" if call.origin == "s0" else _v01(call)


def _v01(call: DetectionInput) -> str:
    return "v00" if call.version == "0.0" else "v01"


def _v03(call: DetectionInput) -> str:
    return "v02" if call.version == "0.2" else "v03"


def _match_shared(call: DetectionInput) -> str | None:
    """Decide for `tasks/get`, `tasks/cancel`, `tasks/resubscribe`, which five dialects have."""
    if call.version in {"0.3", "0.2"}:
        return _v03(call)
    if call.version in {"0.1", "0.0"}:
        return _v01(call)
    if call.param("session_id") is not None and call.method != "tasks/resubscribe":
        return "s0"  # seed-0 cannot resubscribe
    if call.origin is None:
        return None
    if call.origin == "s0" and call.method == "tasks/resubscribe":
        return "v01"
    return call.origin if call.origin in OLDEST else "v03"


def _always(code: str) -> Callable[[DetectionInput], str | None]:
    return lambda call: code


#: Rows J2 to J11; J0 is the pinned mount, J1 an unsupported version, J12 the unknown method.
CALLS: tuple[Rule, ...] = (
    Rule("J2", frozenset({"agent/getCard"}), _always("s0"), legacy=True),
    Rule("J3", frozenset({"tasks/send", "tasks/sendSubscribe"}), _v01, legacy=True),
    Rule("J4", frozenset({"tasks/pushNotification/set"}), _push_set, legacy=True),
    Rule("J5", frozenset({"tasks/pushNotification/get"}), _push_get, legacy=True),
    Rule(
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
    Rule(
        "J7",
        frozenset({"tasks/get", "tasks/cancel", "tasks/resubscribe"}),
        _match_shared,
        legacy=True,
    ),
    Rule("J8", frozenset({"tasks/list"}), _always("v03"), legacy=True),
    Rule(
        "J9",
        frozenset({"SetTaskPushNotificationConfig", "ListTaskPushNotificationConfig"}),
        _always("dr"),
    ),
    Rule(
        "J10",
        frozenset({"CreateTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"}),
        _always("v10"),
    ),
    Rule(
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
        raise refuse_version(version, mount.admits)


def _match_pinned(mount: Mount, call: DetectionInput, switches: CompatOptions) -> str:
    """Return the dialect of a pinned mount. Raises VersionNotSupported."""
    admit(mount, call.version)
    if mount.dialect == "v10" and switches.strict_version and not call.version:
        # the meaning of an absent version by A2A 1.0 §3.6.2
        raise refuse_version("0.3", mount.admits)
    return mount.dialect


def error_dialect(mount: Mount, method: str = "", params: object = None) -> str:
    """Return the dialect for a refusal that is written before the request's own dialect is known."""
    if mount.dialect:
        return mount.dialect
    if "/" in method:
        return "v03"
    fields = params if isinstance(params, dict) else {}
    final = is_final(fields)
    return "dr" if not final and is_draft(fields, final=final) else "v10"


def by_call(mount: Mount, call: DetectionInput, switches: CompatOptions) -> str | None:
    """Return the dialect of a JSON-RPC request; None = call again with the origin of its task.

    Raises VersionNotSupported, MethodNotFound.
    """
    if mount.dialect:
        return _match_pinned(mount, call, switches)
    row = _BY_METHOD.get(call.method)
    if row is None:
        raise MethodNotFound
    if row.legacy and call.version == "1.0":
        if not switches.legacy_method_with_1_0:
            raise MethodNotFound
        call = replace(call, version="")
    if not row.legacy and switches.strict_version:
        if call.version != "1.0":
            raise refuse_version(call.version or "0.3")
        return "v10"
    return row.decide(call)


# -- HTTP+JSON -------------------------------------------------------------------------------------------------------


def _v03_send(call: DetectionInput) -> str | None:
    """Decide for `POST /v1/message:send` and `:stream`."""
    message = _message(call.params)
    role, parts = _member(message, "role"), _member(message, "parts")
    if _speaks_03(call.params):
        return "v03"
    if parts is not None:
        return "v10" if role in ("ROLE_USER", "ROLE_AGENT") else "dr"
    return _by_media(call)


def _speaks_03(params: Mapping[str, Any]) -> bool:
    message = _message(params)
    configuration = _member(params, "configuration")
    parts = _parts(message)
    files = [part.get("file") for part in parts]
    return (
        "request" in params
        or _member(message, "content") is not None
        or _member(message, "kind") is not None
        or any(map(_snake, (params, message, configuration)))
        or any("kind" in part or "type" in part for part in parts)
        or any(
            _member(file, name) is not None
            for file in files
            for name in ("mime_type", "bytes", "uri")
        )
        or _member(configuration, "push_notification") is not None
    )


def _snake(of: object) -> bool:
    return isinstance(of, dict) and any("_" in key for key in of)


def _by_media(call: DetectionInput) -> str:
    named = MEDIA_1_0 in call.media.lower()
    return "dr" if named or call.version == "1.0" else "v03"


def _v1_task(call: DetectionInput) -> str | None:
    """Decide for the other paths below `/v1/tasks`."""
    if _by_media(call) == "dr":
        return "dr"
    if call.origin is None:
        return None
    return "dr" if call.origin == "dr" else "v03"


#: Rows of the paths below `/v1`; every other path belongs to 1.0, except 0.2's extended card.
ROUTES: tuple[Rule, ...] = (
    Rule("H1", frozenset({"agent/authenticatedExtendedCard"}), _always("v02")),
    Rule("H2", frozenset({"v1/card", "v1/agent/authenticatedExtendedCard"}), _always("v03")),
    Rule("H3", frozenset({"v1/extendedAgentCard", "v1/tasks/list"}), _always("dr")),
    Rule("H4", frozenset({"v1/tasks"}), _always("dr")),
    Rule("H5", frozenset({"v1/message:send", "v1/message:stream"}), _v03_send),
)
_BY_PATH = {path: row for row in ROUTES for path in row.methods}
#: All other paths below `/v1`.
BELOW = Rule("H6", frozenset({"v1/*"}), _v1_task)


def reads_body(path: str) -> bool:
    """Return whether the body decides which dialect is used at this path."""
    return path in {"v1/message:send", "v1/message:stream"}


def error_dialect_of_route(mount: Mount, path: str) -> str:
    """Return the dialect for a refusal that is written before the request's own is known; empty = any below `/v1`."""
    if mount.dialect:
        return mount.dialect
    row = _BY_PATH.get(path)
    if row is None or row.number == "H5":
        return "" if path == "v1" or path.startswith("v1/") else "v10"
    return row.decide(DetectionInput(method=path, params={})) or ""


def by_route(mount: Mount, call: DetectionInput, switches: CompatOptions) -> str | None:
    """Return the dialect of an HTTP+JSON request; None = call again with the origin of its task.

    Raises VersionNotSupported.
    """
    if mount.dialect:
        return _match_pinned(mount, call, switches)
    row = _BY_PATH.get(call.method)
    if row is None and (call.method == "v1" or call.method.startswith("v1/")):
        row = BELOW
    if row is not None:
        return row.decide(call)
    if switches.strict_version and call.version != "1.0":
        raise refuse_version(call.version or "0.3")
    if call.version in {"0.0", "0.1", "0.2"}:
        raise refuse_version(call.version)  # none of them has these paths
    return "v10"


def below_v1(mount: Mount, segments: Sequence[str], code: str) -> list[str]:
    """Return the path by the dialect's own routes: a client of 1.0 may have used a base URL that ends in `/v1`."""
    glued = not mount.dialect and code == "v10" and segments[:1] == ["v1"]
    return list(segments[1:] if glued else segments)
