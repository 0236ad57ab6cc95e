"""The assembly of artifacts that were streamed in pieces.

While the body of an artifact's row is empty, its pieces are in the event log, and each reader assembles them. Folding
writes the assembled artifact into the row. It happens after the transaction that closed the artifact, so that reading and
assembling the pieces locks no row; only the update locks the task's row. See docs/decisions/0008.
"""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Collection, Iterator

import msgspec
from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Left

from a2a_tasks.models import Artifact, Event, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind, assemble
from a2a_tasks.protocol.values import Artifact as ArtifactValue
from a2a_tasks.store.backend.sessions import allow_bytes
from a2a_tasks.store.backend.statements import LARGE, Bytes, allow_rows
from a2a_tasks.store.db import run_in_background

__all__ = ["fold", "fold_behind", "assemble_growing", "assemble_without"]

#: An artifact of more bytes in at most FEW_PIECES is not folded. Assembling it costs about as much as reading it.
MAX_BYTES, FEW_PIECES = 4 * 1024 * 1024, 1000
#: Maximum number of pieces that one statement reads.
SLICE = 500
#: Seconds after which a job ends, and continues in a new job, so that other jobs get the thread.
SECONDS = 0.1
#: The beginning of the body of each piece; the id of its artifact as JSON follows.
OPENING = '{"artifact":{"artifactId":'
_decode = msgspec.json.Decoder(ArtifactValue).decode
_ID = re.compile(re.escape(OPENING) + r'("(?:[^"\\]|\\.)*+")')


def fold_behind(task: int, through: int, positions: Collection[int] | None = None) -> None:
    """Fold artifacts in the store's threads after the commit of the current transaction; see `fold`."""

    def begin() -> None:
        run_in_background(_fold_for_a_moment, fold(task, through, positions))

    transaction.on_commit(begin)


def _fold_for_a_moment(steps: Iterator[None]) -> None:
    end = time.monotonic() + SECONDS
    for _ in steps:
        if time.monotonic() > end:
            run_in_background(_fold_for_a_moment, steps)
            return


def fold(task: int, through: int, positions: Collection[int] | None = None) -> Iterator[None]:
    """Fold artifacts of a task that were complete at event `through`, unless they got more pieces later.

    `positions` selects the artifacts; None = all of the task. The iterator does the work: each step executes a few
    statements. Raises django.db's errors.
    """
    artifacts = Artifact.objects.filter(task_id=task, body="").order_by("position")
    if positions is not None:
        artifacts = artifacts.filter(position__in=positions)
    if open_ := [_Open(artifact) for artifact in artifacts]:
        yield from _Folding(task, through, open_).steps()


class _Open:
    """An artifact in pieces: the event numbers of its pieces, and the sum of their bytes."""

    __slots__ = ("artifact", "key", "numbers", "size")

    def __init__(self, artifact: Artifact) -> None:
        self.artifact, self.numbers, self.size = artifact, array("i"), 0
        #: Its id as JSON.
        self.key = write(artifact.artifact_id).decode()

    @property
    def worth_folding(self) -> bool:
        return self.size <= MAX_BYTES or len(self.numbers) > FEW_PIECES


class _Folding:
    """The folding of artifacts of one task: it finds the artifact of each piece, then reads each artifact's pieces."""

    def __init__(self, task: int, through: int, artifacts: list[_Open]) -> None:
        self._task, self._through = task, through
        self._open = {one.key: one for one in artifacts}
        #: Number of the last piece that was assigned to its artifact.
        self._seen = min(one.artifact.first_event for one in artifacts) - 1
        self._beginning = len(OPENING) + max(map(len, self._open))

    def steps(self) -> Iterator[None]:
        """Fold them, with a few statements in each step."""
        while self._look():
            yield
        for one in list(self._open.values()):
            bodies: list[str] = []
            if one.numbers and one.worth_folding:
                for begin in range(0, len(one.numbers), SLICE):
                    numbers = one.numbers[begin : begin + SLICE].tolist()
                    pieces = Event.objects.filter(task_id=self._task, number__in=numbers)
                    with allow_rows(one.size):
                        bodies += pieces.order_by("number").values_list("body", flat=True)
                    yield
                if whole := assemble(bodies).get(one.artifact.artifact_id):
                    self._keep(one, whole.decode())
                yield

    def _look(self) -> bool:
        """Assign the next pieces of the task to their artifacts. False if there are no more of them."""
        pieces = _pieces(self._task, self._seen + 1, None)
        beginnings = pieces.values_list("number", Bytes("body"), Left("body", self._beginning))
        found = list(beginnings[:SLICE])
        for number, size, beginning in found:
            self._seen = number
            opening = _ID.match(beginning)
            one = self._open.get(opening[1]) if opening else None
            if one is None or number < one.artifact.first_event:
                continue
            if number > self._through:
                del self._open[one.key]  # it grows again
                continue
            one.numbers.append(number)
            one.size += size
        return len(found) == SLICE

    def _keep(self, one: _Open, whole: str) -> None:
        """Write the assembled artifact into its row, unless it has grown meanwhile."""
        with allow_bytes(len(whole)) if len(whole) > LARGE else transaction.atomic():
            # This waits for an append that holds the lock, so that the next statement sees its pieces.
            tasks = Task.objects.filter(pk=self._task).select_for_update(of=("self",))
            if not tasks.values_list("pk").first():
                return
            while self._look():
                pass
            if one.key in self._open:
                same = Artifact.objects.filter(pk=one.artifact.pk, body="")
                same.filter(first_event=one.artifact.first_event).update(body=whole)


def _pieces(task: int, first: int, through: int | None) -> QuerySet[Event]:
    """Return the pieces of all artifacts from an event on, oldest first."""
    events = Event.objects.filter(task_id=task, kind=EventKind.ARTIFACT, number__gte=first)
    if through is not None:
        events = events.filter(number__lte=through)
    return events.order_by("number")


def assemble_growing(
    task: int, first_events: dict[str, int], *, through: int | None = None
) -> dict[str, bytes]:
    """Assemble artifacts that are not folded yet, from the events since each began. Returns JSON by artifact id.

    `through` is the last event to read, so that the artifacts agree with a task that was read at this event number.
    An artifact whose events were already removed by a purge has no parts.
    """
    pieces = _pieces(task, min(first_events.values()), through)
    found = assemble(pieces.values_list("body", flat=True))
    return {key: found.get(key) or write({"artifactId": key, "parts": []}) for key in first_events}


def assemble_without(run: int, task: int, artifact_id: str) -> ArtifactValue | None:
    """Assemble an artifact as it was before a run, which comes after all runs that have written to it.

    It has no parts if the run began it. None if the run wrote no piece of it.
    """
    beginning = OPENING + write(artifact_id).decode()
    pieces = _pieces(task, 1, None).filter(body__startswith=beginning)
    counted = pieces.aggregate(own=Count("number", filter=Q(run=run)), size=Sum(Bytes("body")))
    if not counted["own"]:
        return None
    with allow_rows(counted["size"]):
        whole = assemble(pieces.exclude(run=run).values_list("body", flat=True)).get(artifact_id)
    return _decode(whole or write({"artifactId": artifact_id, "parts": []}))
