"""The next delivery of a webhook: a pending one, or the next step of the log, stored as a delivery.

A webhook follows the log. `cursor` is the number of the last settled event; it moves only when a delivery is settled.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Max, Min

from a2a_push.envelope import Notification, abridge, describe, notification, webhook_id
from a2a_push.models import Delivery, DeliveryStatus, PushConfig
from a2a_push.selection import MAX_JOINED_BYTES, Detail, SelectionStep, next_step
from a2a_push.store import bodies
from a2a_push.store.records import LARGE
from a2a_tasks import pubsub
from a2a_tasks.agents import registry
from a2a_tasks.conf import base_url, conf
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.files import in_event, in_task
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, LogEvent, fold
from a2a_tasks.protocol.values import UNSET, Raw, Task, TaskState, TaskStatus, replace
from a2a_tasks.store import clock
from a2a_tasks.store.event_log import count_bytes, read_pages, state_at
from a2a_tasks.store.file_links import make_linker
from a2a_tasks.store.records import LogPosition, WantedEvents
from a2a_tasks.store.tasks import find_by_key

__all__ = ["BATCH_BYTES", "begin_late", "freeze_unsent", "next_deliveries"]

#: Seconds until the next search for a webhook that waits for the rest of an artifact, if there was a new piece.
PATIENCE = 0.25
#: The number of the delivery with which a late webhook begins; no event has it.
BEGINNING = 0
#: Maximum number of rows of one write, so that transactions and lists do not grow with the log.
BATCH = 200
#: Bytes of bodies after which a transaction builds no further ones, and returns no further large ones.
BATCH_BYTES = 4 * 1024 * 1024
#: Maximum number of events of one task in the first read, and their bytes: it serves 64 webhooks together.
GLANCE, GLANCE_BYTES = 32, MAX_JOINED_BYTES
#: Limits of the second read, if more events are needed to decide which of them are joined.
PAGE, PAGE_BYTES = 1000, 4 * MAX_JOINED_BYTES


def next_deliveries(configs: Sequence[PushConfig]) -> tuple[dict[int, Delivery], list[int]]:
    """Return the next delivery of each of these webhooks, by key, and the keys of those left for another transaction.

    The webhooks are locked, with receiver and task loaded. They are left because this transaction has written enough.
    Webhooks in neither result have nothing to send: the time of the next search is set in them, and the caller saves it.
    The events of disabled webhooks are stored as dead.
    """
    waiting = _find_oldest_pending(configs)
    behind = [
        config
        for config in configs
        if config.pk not in waiting and config.cursor < config.task.last_event
    ]
    read = _read_pages([_after(config) for config in behind], GLANCE, GLANCE_BYTES)
    glances = {config.pk: events for config, events in zip(behind, read, strict=True)}
    found: dict[int, Delivery] = {}
    steps: list[tuple[PushConfig, SelectionStep]] = []
    left: list[int] = []
    is_full = False
    for config in configs:
        if refusal := config.disabled_reason or config.receiver.disabled_reason:
            if is_full:
                left.append(config.pk)
            else:
                is_full = _store_dead(config, refusal)
        elif (old := waiting.get(config.pk)) is not None:
            config.due_at = old.next_at  # all later ones wait for it
            if old.next_at is None or old.next_at <= clock.now():
                found[config.pk] = old
        elif (step := _next(config, glances.get(config.pk))) is not None:
            steps.append((config, step))
    made = _freeze(steps)
    found |= {config.pk: row for (config, _), row in zip(steps, made, strict=False)}
    return found, left + [config.pk for config, _ in steps[len(made) :]]


def freeze_unsent(config: PushConfig, name: str) -> None:
    """Store all unsent events of an ended task as deliveries under the id it had, before its successor takes over the id."""
    _pass_frozen(config)
    steps = _steps(config)
    while _freeze(islice(steps, BATCH), name):
        pass


def _freeze(
    steps: Iterable[tuple[PushConfig, SelectionStep]], name: str = "", **columns: Any
) -> list[Delivery]:
    """Store a delivery with its final body for each of these steps, until BATCH_BYTES are built; return the deliveries.

    `name` is the former id of its task, if it has another one now.
    """
    made: list[Delivery] = []
    built: dict[bodies.Key, str] = {}
    size = 0
    for config, step in steps:
        row = _delivery(config, step.events[0].number, step.through, **columns)
        key = bodies.key_of(row)
        if key in built:
            row.body = built[key]
        elif not (_may_be_large(config, step) and bodies.has(row)):
            size += bodies.put(row, _notification(config, step, name).body.decode())
        built[key] = row.body
        made.append(row)
        if size >= BATCH_BYTES:
            break
    Delivery.objects.bulk_create(made)
    return made


def _delivery(config: PushConfig, number: int, through: int, **columns: Any) -> Delivery:
    """Return a delivery without its body."""
    task = config.task
    return Delivery(
        config=config,
        task_id=task.pk,
        receiver_id=config.receiver_id,
        number=number,
        through=through,
        webhook_id=webhook_id(config.pk, task.pk, task.public_id, through),
        dialect=config.dialect,
        content_type=DIALECTS[config.dialect].push_media_type,
        **{"status": DeliveryStatus.PENDING, **columns},
    )


def begin_late(config: PushConfig, url: str = "") -> bool:
    """Store the task as it is as the first notification of a new webhook, so that its receiver knows what came before.

    `url` is the new one of a known webhook.

    The older dialects get Tasks anyway, so for them only a task that ended or waits is one they have missed. Returns
    whether there is such a notification.
    """
    task = config.task
    settled = task.state in TERMINAL | INTERRUPTED
    if not (task.is_task or task.state in TERMINAL):
        return False  # its agent may answer with a direct Message
    if not DIALECTS[config.dialect].pushes_events and not settled:
        return False
    row = _delivery(config, BEGINNING, task.last_event)
    if url:  # the former one may have had the same
        row.webhook_id = webhook_id(config.pk, task.pk, f"{task.public_id} {url}", row.through)
        if Delivery.objects.filter(webhook_id=row.webhook_id).exists():
            return False
    if not bodies.has(row):
        bodies.put(row, _make_first(config).body.decode())
    row.save()
    return True


def _make_first(config: PushConfig) -> Notification:
    """Build the notification of the task as it is; an abridged one if it would be larger than WEBHOOK_MAX_BYTES."""
    task, limit = config.task, int(conf.WEBHOOK_MAX_BYTES)
    key = webhook_id(config.pk, task.pk, task.public_id, task.last_event)
    if count_bytes(task.pk) <= limit and (found := find_by_key(task.pk)) is not None:
        link = make_linker(task.agent, base_url(), task.created_by or task.owner)
        made = describe(key, config.dialect, in_task(found.view, link))
        if len(made.body) <= limit:
            return made
    return abridge(key, config.dialect, _brief(config, task.public_id), limit)


def _brief(config: PushConfig, name: str) -> Task:
    """Return the task in its present state, without content."""
    task = config.task
    return Task(
        id=name,
        context_id=task.context.public_id,
        status=TaskStatus(state=TaskState(task.state), timestamp=rfc3339(task.status_at)),
        history=UNSET,
    )


def _may_be_large(config: PushConfig, step: SelectionStep) -> bool:
    if DIALECTS[config.dialect].pushes_events and step.events[0].body:
        return sum(len(event.body) for event in step.events) > LARGE
    return True


def _find_oldest_pending(configs: Iterable[PushConfig]) -> dict[int, Delivery]:
    pending = Delivery.objects.filter(
        config__in=[c.pk for c in configs], status=DeliveryStatus.PENDING
    )
    first = pending.values("config").annotate(first=Min("pk")).values_list("first", flat=True)
    found = {d.config_id: d for d in Delivery.objects.filter(pk__in=list(first))}
    return {config: delivery for config, delivery in found.items() if config is not None}


def _store_dead(config: PushConfig, reason: str) -> bool:
    """Store up to BATCH unsent notifications of a disabled webhook as dead, so that they can be replayed.

    Returns whether there are more; then the webhook stays due, and the rest follows at once.
    """
    now = clock.now()
    dead: dict[str, Any] = {
        "status": DeliveryStatus.DEAD,
        "reason": reason,
        "settled_at": now,
        "next_at": None,
    }
    _pass_frozen(config)
    pending = Delivery.objects.filter(config=config, status=DeliveryStatus.PENDING).order_by("pk")
    keys = list(pending.values_list("pk", flat=True)[:BATCH])
    Delivery.objects.filter(pk__in=keys).update(**dead)
    rows = _freeze(islice(_steps(config), BATCH - len(keys)), **dead)
    is_full = len(keys) == BATCH or bool(rows and config.cursor < config.task.last_event)
    if is_full:
        config.active, config.due_at = True, now
        hint = pubsub.Committed(config.task_id, config.task.last_event)
        transaction.on_commit(partial(pubsub.publish, hint))
    return is_full


def _pass_frozen(config: PushConfig) -> None:
    """Move the cursor past events that have a delivery row already."""
    pending = Delivery.objects.filter(
        config=config, task=config.task_id, status=DeliveryStatus.PENDING
    )
    last = pending.aggregate(last=Max("through"))["last"] or 0
    config.cursor = max(config.cursor, last)


def _steps(config: PushConfig) -> Iterator[tuple[PushConfig, SelectionStep]]:
    """Yield all steps of the log, and move the cursor past each."""
    while (step := _next(config)) is not None:
        config.cursor = step.through
        yield config, step


def _next(config: PushConfig, glance: list[LogEvent] | None = None) -> SelectionStep | None:
    """Return the next step of the log to send, and move the cursor past events that are not sent.

    If it returns None, it has set the time of the next search in the config. `glance`: events after the cursor, if they
    were read already.
    """
    task = config.task
    ended = task.state in TERMINAL
    config.due_at = None
    if not task.is_task and not ended:
        return None  # its agent may answer with a direct Message: then there is no task
    last = task.last_event
    if not task.is_task:
        config.cursor = last
    while config.cursor < last:
        events, step = _read(config, glance)
        glance = None
        if step is None and events:
            if (
                last > config.looked
            ):  # wait a moment for more pieces; then, until the artifact grows
                config.due_at = clock.now() + datetime.timedelta(seconds=PATIENCE)
            config.looked = last
            return None
        if step is not None and step.events:
            return step
        config.cursor = step.through if step is not None else last
    config.looked = last
    config.active = not ended
    return None


def _read(
    config: PushConfig, glance: list[LogEvent] | None
) -> tuple[list[LogEvent], SelectionStep | None]:
    """Return events after the cursor, and their step. More events are read only if the first ones may not be complete."""
    detail, after = _detail(config.task.agent), [_after(config)]
    events = _read_pages(after, GLANCE, GLANCE_BYTES)[0] if glance is None else glance
    step = next_step(events, config.dialect, detail)
    if step is None and _is_cut(events, config):
        events = _read_pages(after, PAGE, PAGE_BYTES)[0]
        step = next_step(events, config.dialect, detail, patient=not _is_cut(events, config))
    return events, step


def _read_pages(after: Sequence[LogPosition], limit: int, max_count: int) -> list[list[LogEvent]]:
    return read_pages(after, limit=limit, max_bytes=max_count, longest=MAX_JOINED_BYTES)


def _after(config: PushConfig) -> LogPosition:
    """Return the position after the cursor, with the kind of events that the webhook may get."""
    which = WantedEvents.ALL
    if not DIALECTS[config.dialect].pushes_events:
        which = WantedEvents.ENDS
    elif _detail(config.task.agent) == Detail.STATES:
        which = WantedEvents.STATES
    return LogPosition(config.task_id, config.cursor, which)


def _is_cut(events: Sequence[LogEvent], config: PushConfig) -> bool:
    """Return whether the log has more events than were read."""
    return bool(events) and events[-1].number < config.task.last_event


def _detail(agent: str) -> str:
    hosted = registry.find_hosted(agent)
    return Detail.COALESCED if hosted is None else hosted.push_events


def _notification(config: PushConfig, step: SelectionStep, name: str) -> Notification:
    """Build the notification of a step; an abridged task if it would be larger than WEBHOOK_MAX_BYTES."""
    task, limit = config.task, int(conf.WEBHOOK_MAX_BYTES)
    key = webhook_id(config.pk, task.pk, task.public_id, step.through)
    link = make_linker(task.agent, base_url(), task.created_by or task.owner)
    events = list(step.events)
    if not events[0].body:  # too long to be read with other events
        one = LogPosition(task.pk, events[0].number - 1)
        (events,) = read_pages([one], limit=1, max_bytes=1, longest=limit)
    events = [in_event(event, link) for event in events]
    subject = _subject(config, name, limit) if events[0].body else None
    if subject is not None:
        made = notification(key, config.dialect, events, in_task(subject, link))
        if len(made.body) <= limit:
            return made
    return abridge(key, config.dialect, _without_content(config, name, events[-1], limit), limit)


def _subject(config: PushConfig, name: str, limit: int) -> Task | None:
    """Return the task, complete for dialects that send it; None, without reading it, if it is too large."""
    task = config.task
    spoken = DIALECTS[config.dialect]
    if spoken.pushes_events or not spoken.pushes_content:
        return _brief(config, name or task.public_id)
    found = find_by_key(task.pk) if count_bytes(task.pk) <= limit else None
    return replace(found.view, id=name or task.public_id) if found else None


def _without_content(config: PushConfig, name: str, event: LogEvent, limit: int) -> Task:
    """Return the task at an event, without content; a status event's message is included if it is not too long."""
    task = config.task
    state, at = state_at(task.pk, event.number) or (TaskState.SUBMITTED, task.created_at)
    brief = Task(
        id=name or task.public_id,
        context_id=task.context.public_id,
        status=TaskStatus(state=state, timestamp=rfc3339(at)),
        history=UNSET,
        metadata=Raw(task.metadata.encode()) if task.metadata else None,
    )
    fits = event.kind is EventKind.STATUS and 0 < len(event.body) <= limit // 2
    return fold(brief, [event]) if fits else brief
