"""Every operation as a client of each wire writes it, written from the reference alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from lab.matrix.rpc_asks import RPC_WIRES, RpcWire, message_of
from tests.support.dialects.clients import BY_NAME as PINNED
from tests.support.dialects.clients import OLDEST, PASCAL, SLASHED, WIRES, Piece, Wire
from tests.support.dialects.clients import JsonRpc as Calls

__all__ = [
    "OPERATIONS",
    "REPRESENTATIVE",
    "RPC",
    "TARGETS",
    "AnyWire",
    "Ask",
    "Named",
    "ask",
    "wires",
]

HOOK = "https://hooks.example.com/a2a"
AnyWire = Wire | RpcWire
#: The verb of what is called over gRPC: the path is the rpc's, the headers are metadata, the body is the message.
RPC = "RPC"


class Ask(NamedTuple):
    """A request, below the agent."""

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Named:
    """What a request names; all of one shape, whether it is there or not."""

    task: str = ""
    context: str = ""
    config: str = ""
    token: str = ""
    key: str = ""
    #: A task of whoever asks, beside what it names of others.
    own: str = ""


#: A wire's word for an operation: JSON-RPC method, or verb and path.
_PUSH = "tasks/pushNotificationConfig/"
_OLD_PUSH = {"create": "tasks/pushNotification/set", "read": "tasks/pushNotification/get"}
_NEW_PUSH = {"create": "set", "read": "get", "configs": "list", "delete": "delete"}
_SLASHED = {**SLASHED, **{name: _PUSH + word for name, word in _NEW_PUSH.items()}}
_V03 = {**_SLASHED, "list": "tasks/list", "extended": "agent/getAuthenticatedExtendedCard"}
_PASCAL = {
    **PASCAL,
    "list": "ListTasks",
    "create": "CreateTaskPushNotificationConfig",
    "read": "GetTaskPushNotificationConfig",
    "configs": "ListTaskPushNotificationConfigs",
    "delete": "DeleteTaskPushNotificationConfig",
    "extended": "GetExtendedAgentCard",
}
_DRAFT = {
    **_PASCAL,
    "create": "SetTaskPushNotificationConfig",
    "configs": "ListTaskPushNotificationConfig",
}
_SEED = {key: word for key, word in OLDEST.items() if key != "subscribe"}
METHODS: Mapping[str, Mapping[str, str]] = {
    "s0": {**_SEED, **_OLD_PUSH, "called card": "agent/getCard"},
    "v00": {**OLDEST, **_OLD_PUSH},
    "v01": {**OLDEST, **_OLD_PUSH},
    "v02": _SLASHED,
    "v03": _V03,
    "any": _V03,
    "dr": _DRAFT,
    "v10": _PASCAL,
}
_CONFIGS = "tasks/{task}/pushNotificationConfigs"
ROUTES: Mapping[str, tuple[str, str]] = {
    "send": ("POST", "message:send"),
    "stream": ("POST", "message:stream"),
    "get": ("GET", "tasks/{task}"),
    "list": ("GET", "tasks"),
    "cancel": ("POST", "tasks/{task}:cancel"),
    "subscribe": ("POST", "tasks/{task}:subscribe"),
    "create": ("POST", _CONFIGS),
    "read": ("GET", _CONFIGS + "/{config}"),
    "configs": ("GET", _CONFIGS),
    "delete": ("DELETE", _CONFIGS + "/{config}"),
}
CARDS = {"v02": "card", "v03": "card", "any": "card", "dr": "extendedAgentCard"}


def wires() -> list[AnyWire]:
    """Every pinned mount over each of its bindings, the one where the request tells its dialect, and both packages of gRPC."""
    detecting = [
        replace(PINNED["v03"], name="any", mount=""),
        replace(PINNED["v03-http"], name="any-http", mount=""),
    ]
    return [*WIRES, *detecting, *RPC_WIRES]


#: One of each family, for the smoke test.
REPRESENTATIVE = {"v01", "v03-http", "v10", "v10-grpc"}


def _said(wire: AnyWire, named: Named, text: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a send."""
    said = [Piece("text", text)]
    params = wire.grammar.send(said, named.task, named.context, waits=True, history=None)
    if "messageId" in params["message"]:
        params["message"] |= {"messageId": "m", **more}
    return params


def _pushed(code: str, named: Named, *, over_http: bool) -> dict[str, Any]:
    """The params of the creation of a webhook."""
    task, config = named.task, named.config
    if code == "v10":
        return {"taskId": task, "id": config, "url": HOOK}
    if over_http or code == "dr":
        inner = {"pushNotificationConfig": {"url": HOOK}}
        return {"parent": f"tasks/{task}", "configId": config, "config": inner}
    if code == "s0":
        return {"id": task, "url": HOOK}
    if code in {"v00", "v01"}:
        return {"id": task, "pushNotificationConfig": {"url": HOOK}}
    inner = {"pushNotificationConfig": {"url": HOOK, "id": config}}
    return {"taskId": task, **inner}


def _of_config(code: str, named: Named) -> dict[str, Any]:
    """The params that name a webhook."""
    if code == "v10":
        return {"taskId": named.task, "id": named.config}
    if code == "dr":
        return {"name": f"tasks/{named.task}/pushNotificationConfigs/{named.config}"}
    if code in {"s0", "v00", "v01"}:
        return {"id": named.task}
    return {"id": named.task, "pushNotificationConfigId": named.config}


def _page(named: Named) -> dict[str, Any]:
    token = {"pageSize": 1, "pageToken": named.token} if named.token else {}
    return {**({"contextId": named.context} if named.context else {}), **token}


def _params(code: str, word: str, named: Named) -> dict[str, Any]:
    """The params of what is no send, over JSON-RPC."""
    match word:
        case "list":
            return _page(named)
        case "create":
            return _pushed(code, named, over_http=False)
        case "read" | "delete":
            return _of_config(code, named)
        case "configs" if code == "v10":
            return {"taskId": named.task}
        case "configs" if code == "dr":
            return {"parent": f"tasks/{named.task}"}
        case "extended" | "called card":
            return {}
    return {"id": named.task}


def ask(wire: AnyWire, word: str, named: Named, text: str = "hi", **more: Any) -> Ask | None:
    """The request for an operation on a wire; None where the wire has none. `more` are members of its message."""
    version = {"a2a-version": wire.version} if wire.version else {}
    keyed = {"idempotency-key": named.key} if named.key else {}
    if isinstance(wire, RpcWire):
        said = _said(wire, named, text, more) if word in {"send", "stream"} else None
        return _called(wire, word, named, {**version, **keyed}, said)
    code = wire.name.removesuffix("-http")
    headers = {**version, **keyed, "content-type": "application/json"}
    if word == "card":
        return Ask("GET", f"{wire.mount}/.well-known/agent-card.json", version)
    said = _said(wire, named, text, more) if word in {"send", "stream"} else None
    if isinstance(wire.binding, Calls):
        method = METHODS[code].get(word)
        params = _params(code, word, named) if said is None else said
        call = {"jsonrpc": "2.0", "id": "q1", "method": method, "params": params}
        return Ask("POST", wire.mount, headers, json.dumps(call).encode()) if method else None
    return _routed(wire, code, word, named, headers, said)


def _called(
    wire: RpcWire, word: str, named: Named, metadata: dict[str, str], said: Any
) -> Ask | None:
    if word not in wire.rpcs:
        return None
    path = f"/{wire.package}.A2AService/{wire.rpcs[word]}"
    code = "v10" if wire.grammar.content == "parts" else "dr"
    params = _params(code, word, named) if said is None else said
    if code == "dr" and word in {"get", "cancel", "subscribe"}:
        params = {"name": f"tasks/{named.task}"}
    return Ask(RPC, path, metadata, message_of(path, params))


def _routed(
    wire: Wire,
    code: str,
    word: str,
    named: Named,
    headers: dict[str, str],
    said: dict[str, Any] | None,
) -> Ask | None:
    root = f"{wire.mount}/" if code == "v10" else f"{wire.mount}/v1/"
    if word == "extended":
        return Ask("GET", root + CARDS.get(code, "extendedAgentCard"), headers)
    if word not in ROUTES:
        return None
    verb, path = ROUTES[word]
    filled = path.format(task=quote(named.task, safe=""), config=quote(named.config, safe=""))
    query = urlencode(_page(named)) if word == "list" else ""
    body = said if said is not None else None
    if word == "create":
        body = _pushed(code, named, over_http=True)
    return Ask(
        verb,
        f"{root}{filled}?{query}" if query else root + filled,
        headers,
        json.dumps(body).encode() if body else b"",
    )


Writing = Callable[[AnyWire, Named], Ask | None]


def _plain(word: str, *fields: str) -> Writing:
    """An operation that names these; of a send without a task the oldest clients name a new one, always the same way."""

    def written(wire: AnyWire, named: Named) -> Ask | None:
        given = Named(**{field: getattr(named, field) for field in fields})
        return ask(wire, word, given)

    return written


def _referring(word: str) -> Writing:
    def written(wire: AnyWire, named: Named) -> Ask | None:
        if wire.grammar.names_tasks:
            return None
        return ask(wire, word, Named(), referenceTaskIds=[named.task])

    return written


def _resuming(wire: AnyWire, named: Named) -> Ask | None:
    asked = ask(wire, "subscribe", Named(task=named.task))
    return asked and asked._replace(headers={**asked.headers, "last-event-id": "1"})


def _of_mine(word: str) -> Writing:
    """One's own task, another's webhook."""

    def written(wire: AnyWire, named: Named) -> Ask | None:
        if wire.grammar.names_tasks:
            return None  # there a webhook has no name of its own
        return ask(wire, word, Named(task=named.own, config=named.config))

    return written


def _again(word: str) -> Writing:
    """A send under somebody's key; the oldest clients name the same task each time."""

    def written(wire: AnyWire, named: Named) -> Ask | None:
        return ask(
            wire, word, Named(key=named.key, task=named.task if wire.grammar.names_tasks else "")
        )

    return written


#: Every operation, with everything of another's that it can name.
OPERATIONS: Mapping[str, Writing] = {
    "SendMessage to a task": _plain("send", "task"),
    "SendMessage in a context": _plain("send", "context"),
    "SendMessage with a reference": _referring("send"),
    "SendMessage under a key": _again("send"),
    "SendStreamingMessage to a task": _plain("stream", "task"),
    "SendStreamingMessage in a context": _plain("stream", "context"),
    "SendStreamingMessage under a key": _again("stream"),
    "GetTask": _plain("get", "task"),
    "ListTasks of a context": _plain("list", "context"),
    "ListTasks after a token": _plain("list", "token"),
    "CancelTask": _plain("cancel", "task"),
    "SubscribeToTask": _plain("subscribe", "task"),
    "SubscribeToTask after an event": _resuming,
    "CreatePushConfig": _plain("create", "task", "config"),
    "GetPushConfig": _plain("read", "task", "config"),
    "GetPushConfig of one's own task": _of_mine("read"),
    "ListPushConfigs": _plain("configs", "task"),
    "DeletePushConfig": _plain("delete", "task", "config"),
    "DeletePushConfig of one's own task": _of_mine("delete"),
    "GetExtendedAgentCard": _plain("extended"),
    "GetAgentCard": _plain("card"),
    "GetAgentCard by a call": _plain("called card"),
}
TARGETS = [
    (wire, operation)
    for wire in wires()
    for operation, write in OPERATIONS.items()
    if write(wire, Named("t", "c", "f", "p", "k", "o")) is not None
]
