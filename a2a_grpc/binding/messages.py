"""The gRPC forms of the dialects: requests are read by the names of their protos, stream items are messages."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from a2a_grpc.binding.codecs import encoder
from a2a_grpc.binding.schema import FINAL, SUPERSET
from a2a_tasks.bindings.door import switches
from a2a_tasks.conf import of_settings
from a2a_tasks.protocol.dialects import CompatOptions, cards
from a2a_tasks.protocol.dialects.dialect import Subject
from a2a_tasks.protocol.dialects.dr import Draft
from a2a_tasks.protocol.dialects.kinds import Kinds
from a2a_tasks.protocol.dialects.resources import task_of
from a2a_tasks.protocol.dialects.trees import Tree, TreeDialect
from a2a_tasks.protocol.dialects.v03_rest import V03Rest
from a2a_tasks.protocol.dialects.v10 import CODES_1_0_0, V10
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.protocol.requests import CancelTaskRequest, GetTaskRequest, SubscribeToTaskRequest
from a2a_tasks.protocol.values import Message, Raw, Task, TaskPage

__all__ = ["GrpcForm", "form"]


class FinalForm(V10):
    """A2A 1.0 as `lf.a2a.v1`: its JSON is ProtoJSON, so only the items of streams differ."""

    names_errors, faces = False, TreeDialect.faces

    def first(self, subject: Subject, item: Task | Raw, *, ended: bool) -> list[bytes]:
        return [_final_item(text) for text in super().first(subject, item, ended=ended)]

    def event(self, subject: Subject, event: LogEvent, *, final: bool) -> bytes:
        return _final_item(super().event(subject, event, final=final))


def _read_task_name(fields: Fields) -> str:
    """Return the id of the task that a request names."""
    if fields.value("name") is None:
        fields.bad("name", "is required")
        return ""
    return task_of(fields, "name")


class V03Form(V03Rest):
    """A2A 0.2 and 0.3 as `a2a.v1`: tasks have resource names, and absent booleans are false."""

    #: True if the message of an error begins with its name.
    names_errors, codes = True, CODES_1_0_0

    def read_get(self, fields: Fields) -> GetTaskRequest:
        return GetTaskRequest(
            id=_read_task_name(fields), history_length=fields.length("history_length")
        )

    def read_cancel(self, fields: Fields) -> CancelTaskRequest:
        return CancelTaskRequest(id=_read_task_name(fields))

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        return SubscribeToTaskRequest(
            id=_read_task_name(fields), lenient=self.features.lenient_subscribe
        )

    def read_waits(self, fields: Fields, configuration: Fields) -> bool:
        return bool(configuration.boolean("blocking"))

    def page(self, page: TaskPage) -> Any:
        return TreeDialect.page(self, page)

    def first(self, subject: Subject, item: Task | Raw, *, ended: bool) -> list[bytes]:
        return [_superset_item(text) for text in super().first(subject, item, ended=ended)]

    def event(self, subject: Subject, event: LogEvent, *, final: bool) -> bytes:
        return _superset_item(super().event(subject, event, final=final))

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        """Return the card: its proto has the schemes and requirements of the draft, not of its JSON."""
        of_draft = cards.draft(card, url)
        names = [name for name in ("securitySchemes", "security", "skills") if name in of_draft]
        return {**cards.v03(card, url), **{name: of_draft[name] for name in names}}


class DraftForm(V03Form):
    """The draft of 1.0 as `a2a.v1`."""

    code, version, title = Draft.code, Draft.version, Draft.title
    features, faces = Draft.features, Draft.faces

    def __init__(self, switches: CompatOptions | None = None) -> None:
        super().__init__(replace(switches or CompatOptions(), double_base64_v03=False))

    def read_message(self, fields: Fields, message_id: str | None = None) -> Message:
        return Kinds.read_message(self, fields, message_id)

    def message(self, message: Tree) -> Tree:
        named = message.get("referenceTaskIds")
        return super().message(message) | ({"referenceTaskIds": named} if named else {})

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        """Return the card: its proto has `transport` where its JSON has `protocolBinding`."""
        made = cards.draft(card, url)
        interfaces = [
            {"url": one["url"], "transport": one["protocolBinding"]}
            for one in made["supportedInterfaces"]
        ]
        return {**made, "supportedInterfaces": interfaces, "additionalInterfaces": interfaces}


_final_item = encoder(f"{FINAL}.StreamResponse")
_superset_item = encoder(f"{SUPERSET}.StreamResponse")
GrpcForm = FinalForm | V03Form
FORMS: Mapping[str, type[GrpcForm]] = {"v10": FinalForm, "v03": V03Form, "dr": DraftForm}


@of_settings
@functools.cache
def form(code: str) -> GrpcForm:
    """Return the gRPC form of the dialect of that code, with the operator's options."""
    return FORMS[code](switches())
