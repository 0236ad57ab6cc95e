"""Announced versions of agents, and the versions that conversations are kept to."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from django.db import transaction
from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.agents import registry
from a2a_tasks.agents.declaration import (
    AnnouncedAgent,
    Declaration,
    UnfitManifest,
    digest,
    name_queue,
    read_declaration,
)
from a2a_tasks.agents.switches import ON, Switch
from a2a_tasks.agents.versions import AnnouncedVersion
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import (
    BEHIND,
    WAITS_FOR_SLOT,
    AgentVersion,
    Context,
    Run,
    RunStatus,
    Task,
    Worker,
)
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import audit, runs, switches, workers
from a2a_tasks.store.announcements import find_fault
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.scoping import visible_to

__all__ = [
    "Pinned",
    "VersionMoved",
    "VersionRow",
    "announce",
    "fail_tasks_of",
    "find_pinned",
    "forget",
    "list_versions",
    "move_conversations",
    "pin",
    "read_versions",
]

_refused = ThrottledLogger(logging.getLogger(__name__), "an announced agent is not served")
#: The number of conversations or runs that are moved in one transaction.
BATCH = 500
#: The number of declarations that are read in one query: each may have a megabyte.
READ = 50


class VersionMoved(Overloaded):
    """The conversation went to another version at this moment: the route of the message is to be found again."""


class Pinned(NamedTuple):
    """A conversation that exists, and its version; None = it began when the agent had no versions."""

    version: str | None


# --- announcements ----------------------------------------------------------------------------------


def announce(text: bytes, *, environment: str, host: str, signature: str = "") -> Declaration:
    """Store the declaration of an agent, as JSON, for the processes that do not have its code.

    An environment may change the card of a version that it has announced. Another environment may do so only while no
    worker that has the version is alive, or may be starting. Raises UnfitManifest with the reason. If an earlier
    announcement is the reason, the audit log has an entry, too.
    """
    made = read_declaration(text)
    # A manifest may be indented, and the signature is that of this form.
    text = msgspec.json.format(text, indent=-1)
    try:
        _store(made, text, environment=environment, host=host, signature=signature)
    except UnfitManifest as fault:
        with transaction.atomic():
            audit.note(Action.ANNOUNCEMENT_REFUSED, made.slug, detail={"reason": str(fault)})
        raise
    pubsub.publish(pubsub.OverridesChanged())
    return made


@transaction.atomic
def _store(made: Declaration, text: bytes, *, environment: str, host: str, signature: str) -> None:
    values = {
        "environment": environment,
        "declaration": text.decode(),
        "digest": digest(text),
        "signature": signature,
        "host": host,
    }
    row, is_new = AgentVersion.objects.select_for_update().get_or_create(
        slug=made.slug, version=made.version, defaults=values
    )
    same = all(getattr(row, name) == value for name, value in values.items())
    if not is_new and not same and _is_in_use(row):
        if row.environment != environment and row.digest != values["digest"]:
            raise UnfitManifest(
                f"the environment {row.environment} has announced version {made.version} of the agent {made.slug} "
                "with another card, and its workers are alive or starting: give this one another version"
            )
        if row.signature and not signature:
            raise UnfitManifest(
                f"version {made.version} of the agent {made.slug} was announced with a signature, and this announcement "
                "has none: set A2A_ENVIRONMENT_KEY"
            )
    AgentVersion.objects.filter(pk=row.pk).update(**values, announced_at=Now())
    if not is_new and same:
        return
    detail = {"version": made.version, "environment": environment}
    audit.note(Action.AGENT_ANNOUNCE, made.slug, detail=detail)


def _is_in_use(row: AgentVersion) -> bool:
    """Return whether a worker with this version is alive, or was started so recently that it may not have reported yet."""
    recent = AgentVersion.objects.filter(pk=row.pk, announced_at__gt=Now() - workers.patience())
    return recent.exists() or name_queue(row.slug, row.version) in _list_queues_served()


def _list_queues_served() -> list[str]:
    """Return the queues of all living workers that do not drain, each once for each worker."""
    there = Worker.objects.filter(
        seen_at__gt=Now() - workers.patience(), left_at=None, draining=False
    )
    return [queue for queues in there.values_list("queues", flat=True) for queue in queues]


class _CheckedVersion(NamedTuple):
    """A row as it was read, without its declaration; the agent, or why it is not served."""

    identity: tuple[str, ...]
    agent: AnnouncedAgent | None
    fault: str


#: The rows that this process has judged, by key: declarations may be large, and are read once.
_checked: dict[int, _CheckedVersion] = {}


def _read_all(slug: str = "") -> list[tuple[AgentVersion, _CheckedVersion]]:
    """Return the announced versions, of one agent or of all, in the order of their first announcements."""
    which = AgentVersion.objects.filter(slug=slug) if slug else AgentVersion.objects.all()
    rows = list(which.defer("declaration").order_by("pk"))
    new = [
        row.pk
        for row in rows
        if row.pk not in _checked or _checked[row.pk].identity != _identify(row)
    ]
    for start in range(0, len(new), READ):
        for row in AgentVersion.objects.filter(pk__in=new[start : start + READ]):
            _checked[row.pk] = _judge(row)
    if not slug:
        for gone in _checked.keys() - {row.pk for row in rows}:
            _checked.pop(gone, None)
    return [(row, _checked[row.pk]) for row in rows if row.pk in _checked]


def _identify(row: AgentVersion) -> tuple[str, ...]:
    about = (row.slug, row.version, row.environment, row.digest, row.signature, row.host)
    return (*about, str(row.announced_at), str(conf.ENVIRONMENT_KEYS), str(conf.ENVIRONMENT_AGENTS))


def _judge(row: AgentVersion) -> _CheckedVersion:
    try:
        fault = find_fault(row)
        made = None if fault else read_declaration(row.declaration.encode())
    except Exception as unforeseen:  # noqa: BLE001 - one forged row must not hide the other agents
        made, fault = None, f"it cannot be read: {unforeseen!r}"
    agent = AnnouncedAgent(made, row.environment) if made else None
    return _CheckedVersion(_identify(row), agent, fault)


def read_versions() -> dict[str, list[AnnouncedVersion]]:
    """Return the announced versions that are served, by slug, in the order of their first announcements.

    An agent whose versions are all refused has an empty list. The refused ones are logged.
    """
    rows = _read_all()
    served = set(_list_queues_served()) if rows else set()
    is_reported = float(conf.PRESENCE_SECONDS) > 0  # else every worker counts as alive
    found: dict[str, list[AnnouncedVersion]] = defaultdict(list)
    for row, judged in rows:
        known = found[row.slug]
        if judged.agent is None:
            _refused.warning(UnfitManifest(f"{row.slug} {row.version}: {judged.fault}"))
        else:
            is_live = not is_reported or judged.agent.queue in served
            known.append(AnnouncedVersion(judged.agent, is_live))
    return dict(found)


class VersionRow(NamedTuple):
    """One version of an agent, for operators."""

    slug: str
    version: str
    #: The environment that announced it; empty = the host's own code.
    environment: str
    #: Its status in words, or why it is not served.
    standing: str
    #: The number of living workers that have it.
    workers: int
    #: The number of unfinished runs in its queue.
    unfinished: int


def list_versions(slug: str = "") -> list[VersionRow]:
    """Return all versions of the agents, or of one, by slug and announcement; the host's own code comes first."""
    rows: dict[str, list[tuple[AgentVersion, _CheckedVersion]]] = defaultdict(list)
    for row, judged in _read_all(slug):
        rows[row.slug].append((row, judged))
    served, set_by = Counter(_list_queues_served()), switches.read_switches(rows)
    unfinished = Counter[tuple[str, str]](_count_unfinished(rows))
    return [
        line
        for one in sorted(rows)
        for line in _list_versions_of(one, rows[one], served, unfinished, set_by.get(one, ON))
    ]


def _count_unfinished(slugs: Collection[str]) -> dict[tuple[str, str], int]:
    """Count the unfinished runs of these agents, by slug and queue; an empty queue = those of the host's own code."""
    runs = Run.objects.filter(
        status__in=[RunStatus.QUEUED, RunStatus.RUNNING], task__agent__in=list(slugs)
    )
    found = Counter[tuple[str, str]]()
    for slug, queue, count in (
        runs.order_by().values_list("task__agent", "queue").annotate(Count("pk"))
    ):
        found[slug, queue if queue.startswith(name_queue(slug, "")) else ""] += count
    return found


def _list_versions_of(
    slug: str,
    rows: Sequence[tuple[AgentVersion, _CheckedVersion]],
    served: Mapping[str, int],
    unfinished: Mapping[tuple[str, str], int],
    switch: Switch,
) -> Iterator[VersionRow]:
    own = registry.find_of_host(slug)
    known = [row.version for row, judged in rows if judged.agent]
    is_reported = float(conf.PRESENCE_SECONDS) > 0  # else every worker counts as alive
    live = [one for one in known if served[name_queue(slug, one)] or not is_reported]
    default = own.version if own else next(iter(live or known[-1:]), "")
    is_known = switch.version in known or (own is not None and own.version == switch.version)
    serving = switch.version if is_known else default
    if own is not None:
        standing = _describe(own.version, serving, switch)
        count = served[switch.queue or own.queue]
        yield VersionRow(slug, own.version, "", standing, count, unfinished[slug, ""])
    for row, judged in rows:
        standing = f"not served: {judged.fault}" if judged.fault else ""
        if not standing and own is not None and own.version == row.version:
            standing = "not served: the host's own code has this version"
        queue = name_queue(slug, row.version)
        yield VersionRow(
            slug,
            row.version,
            row.environment,
            standing or _describe(row.version, serving, switch),
            served[queue],
            unfinished[slug, queue],
        )


def _describe(version: str, serving: str, switch: Switch) -> str:
    if version == serving:
        return "serves"
    return f"canary, {switch.canary_percent:g} %" if version == switch.canary else ""


def forget(slug: str, version: str) -> bool:
    """Remove an announced version. False if there is none.

    Raises ValueError while a worker has it or may be starting with it, or while runs wait for it.
    """
    with transaction.atomic():
        # A worker that starts now waits for the lock, and then announces it anew.
        rows = AgentVersion.objects.select_for_update().filter(slug=slug, version=version)
        row = rows.first()
        if row is None:
            return False
        if _is_in_use(row):
            raise ValueError(
                f"Workers that have version {version} of {slug} are alive, or may be starting, since it was announced "
                f"less than {workers.patience().total_seconds():g} seconds ago: stop them first"
            )
        unfinished = Run.objects.filter(
            queue=name_queue(slug, version), status__in=[RunStatus.QUEUED, RunStatus.RUNNING]
        )
        if unfinished.exists():
            raise ValueError(
                f"Runs wait for version {version} of {slug}: move its conversations first"
            )
        row.delete()
        audit.note(Action.AGENT_FORGET, slug, detail={"version": version})
    pubsub.publish(pubsub.OverridesChanged())
    return True


# --- conversations ----------------------------------------------------------------------------------


def find_pinned(scope: OwnerScope, *, task_id: str = "", context_id: str = "") -> Pinned | None:
    """Return the version of the conversation of this task or context in the scope. None: there is no such conversation."""
    if task_id:
        tasks = Task.objects.filter(visible_to(scope), public_id=task_id).order_by("pk")
        contexts = Context.objects.filter(pk__in=tasks.values("context")[:1])
    else:
        contexts = Context.objects.filter(
            public_id=context_id, agent=scope.agent, owner=scope.owner, tenant=scope.tenant
        )
    return next((Pinned(version) for version in contexts.values_list("version", flat=True)), None)


def pin(version: str) -> Companion:
    """Return a function that keeps the conversation of a new task to this version, in the accepting transaction.

    It raises VersionMoved if another request has kept it to another version at this moment, or an operator has moved it.
    """

    def keep(task: int) -> None:
        context = Context.objects.filter(tasks=task)
        context.filter(version=None).update(version=version)
        if context.exclude(version=version).exists():
            raise VersionMoved

    return keep


def move_conversations(slug: str, version: str, to: str) -> int:
    """Move all conversations of one version of an agent to another; return their number.

    An empty `version` stands for the host's own code, which need not exist any more. Runs that
    wait go with their conversations; a run that a worker holds ends where it is. Each batch is one transaction. Raises
    ValueError for a version that the host does not have, and for two equal ones.
    """
    if not to:
        raise ValueError("Name the version to which the conversations move")
    switches.refuse_unknown(slug, to)
    own = registry.find_of_host(slug)
    own_version = own.version if own else ""
    is_own = to == own_version
    if version == to or (is_own and not version):
        raise ValueError(f"The conversations of version {to} are there already")
    mine = Q(version=version)
    if version in {"", own_version}:
        mine |= Q(version="") | Q(version=None)
    moved = _move_all(Context.objects.filter(mine, agent=slug), "" if is_own else to)
    queue = name_queue(slug, to)
    if own is not None and is_own:
        queue = switches.row_of(slug).queue or own.queue
    waiting = Run.objects.filter(
        status=RunStatus.QUEUED, task__agent=slug, task__context__version="" if is_own else to
    ).exclude(queue=queue)
    if is_own:  # the others of the host's own code stay in their queues
        waiting = waiting.filter(queue=name_queue(slug, version))
    _move_runs(waiting, queue)
    with transaction.atomic():
        audit.note(
            Action.AGENT_MOVE, slug, detail={"from": version, "to": to, "conversations": moved}
        )
    pubsub.publish(pubsub.RunQueued(queue))
    return moved


def _move_all(mine: QuerySet[Context], to: str) -> int:
    """Keep these conversations to another version; return their number.

    A second pass finds the conversations that joined during the first.
    """
    moved = 0
    for _ in range(2):
        after = 0
        while keys := list(
            mine.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:BATCH]
        ):
            moved += _move_batch(mine.filter(pk__in=keys), to)
            after = keys[-1]
    return moved


@transaction.atomic
def _move_batch(some: QuerySet[Context], to: str) -> int:
    # In the order in which accepting transactions lock them.
    in_order = some.order_by("public_id", "agent", "owner", "tenant").select_for_update()
    keys = list(in_order.values_list("pk", flat=True))
    return Context.objects.filter(pk__in=keys).update(version=to)


def _move_runs(waiting: QuerySet[Run], queue: str) -> None:
    """Move waiting runs to a queue. They keep their order, and begin with its next round."""
    there = Run.objects.filter(WAITS_FOR_SLOT, queue=queue).aggregate(first=Min("round"))["first"]
    rounds = dict(waiting.order_by("pk").values_list("pk", "round"))
    first = min((number for number in rounds.values() if number < BEHIND), default=0)
    keys, shift = list(rounds), 1 + (there or 0) - first
    for start in range(0, len(keys), BATCH):
        _move_some_runs(keys[start : start + BATCH], queue, shift)


@transaction.atomic
def _move_some_runs(keys: Sequence[int], queue: str, shift: int) -> None:
    # One that is locked is being claimed, or ends.
    some = Run.objects.filter(pk__in=keys, status=RunStatus.QUEUED)
    rounds = dict(some.select_for_update(skip_locked=True).values_list("pk", "round"))
    without = {key for key, number in rounds.items() if number >= BEHIND}  # they have no round
    Run.objects.filter(pk__in=without).update(queue=queue)
    others = Run.objects.filter(pk__in=rounds.keys() - without)
    others.update(queue=queue, round=F("round") + shift)


#: The last run that was tried in each queue whose version is gone. Runs that cannot be failed now, since they are locked
#: or parked, must not keep the others from their turn.
_tried: dict[str, int] = {}


def fail_tasks_of(gone: Sequence[tuple[str, str]]) -> int:
    """Fail the tasks whose runs wait for one of these versions (slug, version) that no worker has; return their number.

    A version counts as gone if no worker that has it was seen for a while (`workers.absence`). A call tries BATCH runs of
    each version, and the next one goes on after them.
    """
    failed = 0
    seen = Worker.objects.filter(seen_at__gt=Now() - workers.absence())
    there = {queue for queues in seen.values_list("queues", flat=True) for queue in queues}
    for slug, version in gone:
        queue = name_queue(slug, version)
        for task in _take_late(queue) if queue not in there else ():
            reason = f"No worker has version {version} of the agent any more."
            failed += runs.fail_unstarted_task(task, reason)
    return failed


def _take_late(queue: str) -> list[int]:
    """Return the tasks of the next late runs of the queue, and begin anew at the end."""
    late = Run.objects.filter(
        queue=queue, status=RunStatus.QUEUED, due_at__lt=Now() - workers.absence()
    )
    after = late.filter(pk__gt=_tried.pop(queue, 0)).order_by("pk")
    found = list(after.values_list("pk", "task_id")[:BATCH])
    if len(found) == BATCH:
        _tried[queue] = found[-1][0]
    return list(dict.fromkeys(task for _, task in found))
