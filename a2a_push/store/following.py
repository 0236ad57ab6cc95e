"""What comes next for webhooks: a delivery that waits, or the next step of the log, frozen as one.

A webhook is a follower of the log: `cursor` is its number, and moves over what is to be sent only when that is settled.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from a2a_push.envelope import notification, webhook_id
from a2a_push.models import Delivery, PushConfig, Status
from a2a_push.selection import LONGEST_JOINED, SENT_EVENTS, Detail, Step, next_step
from a2a_tasks import wakeups
from a2a_tasks.agents import registry
from a2a_tasks.conf import conf
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.files import in_event, in_task
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.values import UNSET, Task, TaskState, TaskStatus, replace
from a2a_tasks.store import log
from a2a_tasks.store.file_links import linking
from a2a_tasks.store.tasks import find_by_key

__all__ = ["freeze_rest", "next_deliveries"]

#: Seconds for which a webhook that waits for the rest of an artifact is left alone, if there was a new piece.
PATIENCE = 0.25
#: Rows written in one go, so that no transaction and no list grows with the log.
BATCH = 200
#: Events of one task read at first, and their bytes: 64 webhooks are looked at together.
GLANCE, GLANCE_BYTES = 32, LONGEST_JOINED
#: The same where that is not enough to know what is to be joined.
PAGE, PAGE_BYTES = 1000, 4 * LONGEST_JOINED


def next_deliveries(configs: Sequence[PushConfig]) -> dict[int, Delivery]:
    """What is to be sent now to each of these webhooks, by their keys; they are locked, with receiver and task loaded.

    Those left out have nothing to send: when to look at them again is noted in them, to be saved. All of a webhook that is
    disabled is buried.
    """
    waiting = _oldest_pending(configs)
    glances = _glances([config for config in configs if config.pk not in waiting])
    found: dict[int, Delivery] = {}
    made: list[Delivery] = []
    for config in configs:
        if refusal := config.disabled_reason or config.receiver.disabled_reason:
            _bury(config, refusal)
        elif (old := waiting.get(config.pk)) is not None:
            if _due(config, old):
                found[config.pk] = old
        elif (step := _next(config, glances.get(config.pk))) is not None:
            found[config.pk] = _frozen(config, step)
            made.append(found[config.pk])
    Delivery.objects.bulk_create(made)
    return found


def freeze_rest(config: PushConfig, name: str) -> None:
    """Freeze all that an ended task has not told a webhook yet, under the id it had, since a successor takes that over."""
    _pass_frozen(config)
    steps = _steps(config)
    while rows := [_frozen(config, step, name) for step in islice(steps, BATCH)]:
        Delivery.objects.bulk_create(rows)


def _oldest_pending(configs: Iterable[PushConfig]) -> dict[int, Delivery]:
    pending = Delivery.objects.filter(config__in=[c.pk for c in configs], status=Status.PENDING)
    first = pending.values("config").annotate(first=Min("pk")).values_list("first", flat=True)
    found = {d.config_id: d for d in Delivery.objects.filter(pk__in=list(first))}
    return {config: delivery for config, delivery in found.items() if config is not None}


def _due(config: PushConfig, pending: Delivery) -> bool:
    """Is it time for this one? Everything after it waits."""
    config.due_at = pending.next_at
    return config.due_at is None or config.due_at <= timezone.now()


def _bury(config: PushConfig, reason: str) -> None:
    """Keep what a disabled webhook is not told of as rows that can be replayed: BATCH of them, and the rest at once after."""
    now = timezone.now()
    dead = {"status": Status.DEAD, "reason": reason, "settled_at": now, "next_at": None}
    _pass_frozen(config)
    pending = Delivery.objects.filter(config=config, status=Status.PENDING).order_by("pk")
    keys = list(pending.values_list("pk", flat=True)[:BATCH])
    Delivery.objects.filter(pk__in=keys).update(**dead)
    rows = [_frozen(config, step) for step in islice(_steps(config), BATCH - len(keys))]
    for row in rows:
        row.status, row.reason, row.settled_at = Status.DEAD, reason, now
    Delivery.objects.bulk_create(rows)
    if len(keys) + len(rows) == BATCH:
        config.active, config.due_at = True, now
        hint = wakeups.Committed(config.task_id, config.task.last_event)
        transaction.on_commit(partial(wakeups.announce, hint))


def _pass_frozen(config: PushConfig) -> None:
    """Have the cursor pass what is a row already."""
    pending = Delivery.objects.filter(config=config, task=config.task_id, status=Status.PENDING)
    last = pending.aggregate(last=Max("through"))["last"] or 0
    config.cursor = max(config.cursor, last)


def _steps(config: PushConfig) -> Iterator[Step]:
    """All steps there are; the cursor passes them."""
    while (step := _next(config)) is not None:
        config.cursor = step.through
        yield step


def _next(config: PushConfig, glance: list[Recorded] | None = None) -> Step | None:
    """The next step of the log that is sent. The cursor passes what is not; None says in the config when to look again.

    `glance`: the events after the cursor, if some were read already.
    """
    task = config.task
    ended = task.state in TERMINAL
    config.due_at = None
    if not task.is_task and not ended:
        return None  # perhaps its agent answers directly: then there is no task to be told of
    last = task.last_event
    if not task.is_task:
        config.cursor = last
    while config.cursor < last:
        events, step = _read(config, glance)
        glance = None
        if step is None and events:
            _wait_for_more(config, last)
            return None
        if step is not None and step.events:
            return step
        config.cursor = step.through if step is not None else last
    config.looked = last
    config.active = not ended
    return None


def _wait_for_more(config: PushConfig, last: int) -> None:
    """Leave a growing artifact alone for a moment; one that has not grown since the last look, until it does."""
    if last > config.looked:
        config.due_at = timezone.now() + datetime.timedelta(seconds=PATIENCE)
    config.looked = last


def _glances(configs: Sequence[PushConfig]) -> dict[int, list[Recorded]]:
    """The first events after the cursors of those that have any."""
    behind = [config for config in configs if config.cursor < config.task.last_event]
    after = [(config.task_id, config.cursor) for config in behind]
    read = log.read_each(after, GLANCE, GLANCE_BYTES)
    return {config.pk: events for config, events in zip(behind, read, strict=True)}


def _read(config: PushConfig, glance: list[Recorded] | None) -> tuple[list[Recorded], Step | None]:
    """Events after the cursor, and the step they make: a few, and more only if these may be the beginning of more."""
    detail, after = _detail(config.task.agent), [(config.task_id, config.cursor)]
    events = glance or log.read_each(after, GLANCE, GLANCE_BYTES)[0]
    step = next_step(events, config.dialect, detail)
    if step is None and _is_cut(events, config):
        events = log.read_each(after, PAGE, PAGE_BYTES)[0]
        step = next_step(events, config.dialect, detail, patient=not _is_cut(events, config))
    return events, step


def _is_cut(events: Sequence[Recorded], config: PushConfig) -> bool:
    """Has the log more than was read of it?"""
    return bool(events) and events[-1].number < config.task.last_event


def _detail(agent: str) -> str:
    hosted = registry.hosted(agent)
    return Detail.COALESCED if hosted is None else hosted.push_events


def _frozen(config: PushConfig, step: Step, name: str = "") -> Delivery:
    """A delivery as it will be sent, however often; `name` is the id its task had, if it has another one now."""
    task = config.task
    key = webhook_id(config.pk, task.pk, task.public_id, step.through)
    link = linking(task.agent, str(conf.PUBLIC_URL), task.maker or task.owner)
    events = [in_event(event, link) for event in step.events]
    subject = in_task(_subject(config, name), link)
    told = notification(key, config.dialect, events, subject)
    return Delivery(
        config=config,
        task_id=task.pk,
        receiver_id=config.receiver_id,
        number=step.events[0].number,
        through=step.through,
        webhook_id=told.id,
        dialect=config.dialect,
        content_type=told.content_type,
        body=told.body.decode(),
        status=Status.PENDING,
    )


def _subject(config: PushConfig, name: str) -> Task:
    """The task, whole for dialects that are sent it."""
    task = config.task
    found = None if config.dialect in SENT_EVENTS else find_by_key(task.pk)
    if found is not None:
        return replace(found.view, id=name or task.public_id)
    return Task(
        id=name or task.public_id,
        context_id=task.context.public_id,
        status=TaskStatus(state=TaskState(task.state), timestamp=rfc3339(task.status_at)),
        history=UNSET,
    )
