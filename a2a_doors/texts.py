"""An answer of A2A as one text, for clients that know nothing else: artifacts, then the last message; never empty.

Data parts are JSON between fences, files are links, a form is a line for each field.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import A2AError, InvalidParams
from a2a_tasks.protocol.forms import FORM, find_form, type_of
from a2a_tasks.protocol.jsontext import read, write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, EventKind, LogEvent, read_status_body
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.values import (
    UNSET,
    Artifact,
    ArtifactUpdate,
    Message,
    Part,
    Raw,
    Task,
    TaskState,
)

__all__ = [
    "DONE",
    "GAP",
    "Telling",
    "name_fields",
    "read_object",
    "show_form",
    "show_message",
    "show_parts",
    "show_task",
]

#: The text of an answer without one: clients take an empty answer for a failure, and ask again.
DONE = "Done, without a text."
#: The space between two pieces.
GAP = "\n\n"
_artifact = msgspec.json.Decoder(Artifact).decode
_update = msgspec.json.Decoder(ArtifactUpdate).decode
_message = msgspec.json.Decoder(Message).decode
#: States whose message is part of the answer.
ANSWERS = INTERRUPTED | {TaskState.COMPLETED}


def name_fields(fault: A2AError) -> str:
    """Return the faulty fields with their faults; the message of an error that names no field."""
    violations = fault.violations if isinstance(fault, InvalidParams) else ()
    return "; ".join(f"{path} {why}".strip() for path, why in violations) or fault.message


def show_task(task: Task) -> str:
    """Return the text of a whole task: all artifacts and the message of its status, whatever the state is."""
    artifacts = [] if task.artifacts is UNSET else task.artifacts
    texts = [show_parts(_artifact(text).parts) for text in artifacts]
    if task.status.message:
        texts.append(show_message(task.status.message))
    return GAP.join(filter(None, texts)) or DONE


def show_message(message: Message | Raw) -> str:
    """Return the text of a message; the fields of its form, if it is a question with one."""
    said = _message(message) if isinstance(message, Raw) else message
    form = find_form(said) if FORM in said.extensions else None
    if form is None:
        return show_parts(said.parts)
    others = [part for part in said.parts if not _has_form(part)]
    return GAP.join(filter(None, [show_parts(others), show_form(form)]))


def _has_form(part: Part) -> bool:
    return isinstance(part.data, dict) and "form" in part.data


def show_parts(parts: Iterable[Part]) -> str:
    """Return the text of parts: texts that follow each other are one text, all else stands apart."""
    return _ArtifactText().add(parts)


def _show_part(part: Part) -> str:
    if part.data is not UNSET:
        return f"```json\n{msgspec.json.format(write(part.data), indent=2).decode()}\n```"
    media_type = media_type_of(part)
    url = part.url if isinstance(part.url, str) else f"data:{media_type};base64,{part.raw}"
    name = (part.filename or media_type).replace("[", "(").replace("]", ")")
    return f"{'!' if media_type.startswith('image/') else ''}[{name}]({url})"


def show_form(form: Mapping[str, Any]) -> str:
    """Return the fields of a form, and how they are answered in a text."""
    properties: Mapping[str, Mapping[str, Any]] = form["properties"]
    required = form.get("required", ())
    lines = [_show_field(name, one, name in required) for name, one in properties.items()]
    if len(properties) == 1:
        how = "Answer with the value alone."
    else:
        how = f"Answer with JSON, such as {write(dict.fromkeys(properties, '...')).decode()}"
    return "\n".join([*lines, "", how])


def read_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text, perhaps between fences: the answer to a form. None if there is none."""
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    with contextlib.suppress(A2AError, UnicodeEncodeError):
        found = read(bare.encode(), max_depth=int(conf.MAX_JSON_DEPTH))
        return found if isinstance(found, dict) else None
    return None


def _show_field(name: str, field: Mapping[str, Any], required: bool) -> str:
    about = ", ".join(filter(None, [type_of(field), "" if required else "optional"]))
    told = [str(field[key]) for key in ("title", "description") if field.get(key)]
    if choices := field.get("enum"):
        told.append(f"one of {', '.join(map(_show_value, choices))}")
    if "default" in field:
        told.append(f"{_show_value(field['default'])} if left out")
    return f"- {name}{f' ({about})' if about else ''}{': ' if told else ''}{'; '.join(told)}"


def _show_value(value: Any) -> str:
    return value if isinstance(value, str) else write(value).decode()


@dataclass(slots=True)
class _ArtifactText:
    """An artifact as far as it was told."""

    #: The text that was told before the last beginning, and the characters of it that were repeated since.
    text: str = ""
    repeated: int = 0
    #: The pieces after that text: they are not joined, or each would cost as much as all before.
    pieces: list[str] = field(default_factory=list)
    #: True if the next piece stands apart from the one before.
    apart: bool = False
    begun: bool = False

    def begin_again(self) -> None:
        """Compare what comes now with what was told."""
        self.text, self.pieces = "".join([self.text, *self.pieces]), []
        self.repeated, self.apart, self.begun = 0, False, False

    def add(self, parts: Iterable[Part]) -> str:
        """Return the text of further parts."""
        texts = []
        for part in parts:
            is_text = isinstance(part.text, str)
            if text := part.text if isinstance(part.text, str) else _show_part(part):
                texts.append(GAP if self.begun and (self.apart or not is_text) else "")
                texts.append(text)
                self.begun, self.apart = True, not is_text
        return "".join(texts)

    def tell(self, text: str) -> tuple[str, bool]:
        """Return the part of a text that was not told yet, and whether it contradicts what was told."""
        if self.repeated == len(self.text):
            self.pieces.append(text)
            return text, False
        if self.text.startswith(text, self.repeated):
            self.repeated += len(text)
            return "", False
        left = self.text[self.repeated :]
        differs = not text.startswith(left)
        new = self.text[: self.repeated] + text if differs else text[len(left) :]
        if differs:
            self.text = ""
        self.pieces, self.repeated = [new], len(self.text)
        return new, differs


class Telling:
    """The text of one turn in pieces, in the order of its events.

    A second attempt of an agent begins its artifacts again: nothing is told twice.
    """

    def __init__(self) -> None:
        self._told: dict[str, _ArtifactText] = {}
        #: The artifact told last; None = something else.
        self._last: str | None = None
        #: True once something was told.
        self.begun = False

    def tell(self, event: LogEvent) -> str:
        """Return the further text that an event brings; often none."""
        if event.kind is EventKind.ARTIFACT:
            return self._tell_artifact(_update(event.body))
        if event.kind is EventKind.STATUS and event.state in ANSWERS:
            message = read_status_body(event.body).message
            return self.add(show_message(message)) if message else ""
        return ""

    def add(self, text: str) -> str:
        """Return a further text, apart from all before."""
        gap = GAP if self.begun and text else ""
        self.begun, self._last = self.begun or bool(text), None
        return gap + text

    def finish(self) -> str:
        """Return what is to be told at the end: a few words if nothing was told."""
        return "" if self.begun else self.add(DONE)

    def _tell_artifact(self, update: ArtifactUpdate) -> str:
        key = update.artifact.artifact_id
        told = self._told.setdefault(key, _ArtifactText())
        if not update.append:
            told.begin_again()
        text, differs = told.tell(told.add(update.artifact.parts))
        if text and (self._last != key or differs):
            text = self.add(text)
        if text:
            self._last = key
        return text
