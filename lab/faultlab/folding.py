"""A task's log folded by the rules of A2A 1.0 §4.2, written anew: the host's own fold is what is checked with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lab.faultlab.dump import EventRow

__all__ = ["ARTIFACT", "INPUT", "MESSAGE", "STATUS", "Folded", "fold", "prefixes", "said"]

INPUT, STATUS, ARTIFACT, MESSAGE = 1, 2, 3, 4
SUBMITTED = "TASK_STATE_SUBMITTED"
#: States in which an agent waits for its client.
WAITING = {"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"}


@dataclass
class Folded:
    """A task as its events say it is."""

    state: str = SUBMITTED
    #: The whole status; None before the first status event.
    status: dict[str, Any] | None = None
    #: By artifact id, in the order of creation.
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: The numbers of the events whose messages are the history: what was answered comes in with the answer.
    history: list[int] = field(default_factory=list)
    #: The event with a question that nobody has answered.
    question: int | None = None

    def take(self, event: EventRow) -> None:
        """Go on by one event."""
        if event.kind == STATUS:
            self.status = said(event)["status"]
            self.state = self.status["state"]
            asks = self.state in WAITING and "message" in self.status
            self.question = event.number if asks else None
        elif event.kind == ARTIFACT:
            self.add(said(event))
        else:
            if event.kind == INPUT and self.question is not None:
                self.history.append(self.question)
                self.question = None
            self.history.append(event.number)

    def show(self, view: dict[str, Any]) -> None:
        """Have the artifacts of a Task that was shown, and no others."""
        artifacts = view.get("artifacts", [])
        self.artifacts = {one["artifactId"]: {**one, "parts": [*one["parts"]]} for one in artifacts}

    def add(self, update: dict[str, Any]) -> None:
        """Go on by a piece of an artifact."""
        piece = update["artifact"]
        known = self.artifacts.get(piece["artifactId"])
        if update.get("append") and known is not None:
            known["parts"] += piece["parts"]
        else:
            self.artifacts[piece["artifactId"]] = {**piece, "parts": list(piece["parts"])}

    def sizes(self) -> list[tuple[str, int]]:
        """How many parts each artifact has: compared first, since contents may be long."""
        return [(name, len(artifact["parts"])) for name, artifact in self.artifacts.items()]

    def shows(self, view: dict[str, Any]) -> bool:
        """Is this the status, and are these the artifacts, of a Task that somebody was shown?"""
        status = view.get("status", {})
        if status != self.status and (self.status or status.get("state") != SUBMITTED):
            return False
        return bool(view.get("artifacts", []) == list(self.artifacts.values()))


def said(event: EventRow) -> dict[str, Any]:
    """What an event says. Raises ValueError if that is no JSON."""
    found: dict[str, Any] = json.loads(event.body)
    return found


def fold(events: Iterable[EventRow], through: int | None = None) -> Folded:
    """The task after its events, or after those up to a number."""
    folded = Folded()
    for event in events:
        if through is None or event.number <= through:
            folded.take(event)
    return folded


def prefixes(events: Iterable[EventRow], view: dict[str, Any]) -> list[int]:
    """The numbers after which the task was as this view shows it."""
    shown = view.get("artifacts", [])
    sizes = [(artifact["artifactId"], len(artifact.get("parts", []))) for artifact in shown]
    found, folded = [], Folded()
    for event in events:
        folded.take(event)
        if folded.sizes() == sizes and folded.shows(view):
            found.append(event.number)
    return found
