"""Announced versions of agents, and the versions that conversations are kept to."""

from __future__ import annotations

import hmac
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from django.db import transaction
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
    refuse_newer,
    sign,
)
from a2a_tasks.agents.switches import ON, Switch, queue_of
from a2a_tasks.agents.versions import AnnouncedVersion
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf, project
from a2a_tasks.models import AgentVersion, Context, Run, RunStatus, Task, Worker
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import audit, runs, switches, workers
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.scoping import visible_to

__all__ = [
    "Pinned",
    "announce",
    "fail_tasks_of",
    "find_fault",
    "find_pinned",
    "forget",
    "list_versions",
    "move_conversations",
    "pin",
    "read_environment_keys",
    "read_versions",
]

_refused = ThrottledLogger(logging.getLogger(__name__), "an announced agent is not served")
#: The bound of counts of runs.
COUNTED = 10_000
#: The number of conversations that are moved in one transaction.
BATCH = 500


class Pinned(NamedTuple):
    """A conversation that exists, and its version; None = it began when the agent had no versions."""

    version: str | None


# --- announcements ----------------------------------------------------------------------------------


def announce(text: bytes, *, environment: str, host: str, signature: str = "") -> Declaration:
    """Store the declaration of an agent, as JSON, for the processes that do not have its code.

    An environment may change the card of a version that it has announced. Another environment may do so only while no
    worker that has the version is alive. Raises UnfitManifest with the reason; the refusal is in the audit log, too.
    """
    made = read_declaration(text)
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
    if not is_new and all(getattr(row, name) == value for name, value in values.items()):
        return
    is_other = row.environment != environment
    if (
        is_other
        and row.digest != values["digest"]
        and name_queue(made.slug, made.version) in _list_queues_served()
    ):
        raise UnfitManifest(
            f"the environment {row.environment} has announced version {made.version} of the agent {made.slug} "
            "with another card, and its workers are alive: give this one another version"
        )
    if not is_new:
        AgentVersion.objects.filter(pk=row.pk).update(**values, announced_at=Now())
    detail = {"version": made.version, "environment": environment}
    audit.note(Action.AGENT_ANNOUNCE, made.slug, detail=detail)


def _list_queues_served() -> list[str]:
    """Return the queues of all living workers that do not drain, each once for each worker."""
    there = Worker.objects.filter(
        seen_at__gt=Now() - workers.patience(), left_at=None, draining=False
    )
    return [queue for queues in there.values_list("queues", flat=True) for queue in queues]


def read_environment_keys() -> dict[str, str]:
    """Return the secret of each environment whose agents are served; empty = all are."""
    pairs = (pair.strip().partition("=") for pair in str(conf.ENVIRONMENT_KEYS).split(","))
    return {name: key for name, _, key in pairs if name}


def find_fault(row: AgentVersion) -> str:
    """Return why an announced version is not served; empty = it is."""
    keys = read_environment_keys()
    if keys and row.environment not in keys:
        return f"A2A_ENVIRONMENT_KEYS does not name the environment {row.environment}"
    if keys:
        expected = sign(keys[row.environment], row.environment, row.declaration.encode())
        if not hmac.compare_digest(expected, row.signature):
            return f"its signature is not that of the environment {row.environment}"
    try:
        refuse_newer(row.host, project.A2A_HOST_VERSION)
        made = read_declaration(row.declaration.encode())
    except UnfitManifest as fault:
        return str(fault)
    return "" if (made.slug, made.version) == (row.slug, row.version) else "its row was altered"


def read_versions() -> dict[str, list[AnnouncedVersion]]:
    """Return the announced versions that are served, by slug, the oldest first. The others are logged."""
    rows = list(AgentVersion.objects.order_by("announced_at", "pk"))
    served = set(_list_queues_served()) if rows else set()
    found: dict[str, list[AnnouncedVersion]] = defaultdict(list)
    for row in rows:
        if fault := find_fault(row):
            _refused.warning(UnfitManifest(f"{row.slug} {row.version}: {fault}"))
            continue
        agent = AnnouncedAgent(
            msgspec.json.decode(row.declaration, type=Declaration), row.environment
        )
        found[row.slug].append(AnnouncedVersion(agent, agent.queue in served))
    return dict(found)


class VersionRow(NamedTuple):
    """One version of an agent, for operators."""

    slug: str
    version: str
    #: The environment that announced it; empty = the host's own code.
    environment: str
    #: Its part in words, or why it is not served.
    standing: str
    #: The number of living workers that have it, and of its conversations with unfinished tasks.
    workers: int
    unfinished: int


def list_versions(slug: str = "") -> list[VersionRow]:
    """Return all versions of the agents, or of one, by slug and announcement; the host's own code comes first."""
    rows = list(AgentVersion.objects.order_by("slug", "announced_at", "pk"))
    slugs = sorted({row.slug for row in rows} if not slug else {slug} & {row.slug for row in rows})
    served, set_by = Counter(_list_queues_served()), switches.read_switches()
    return [line for one in slugs for line in _list_versions_of(one, rows, served, set_by)]


def _list_versions_of(
    slug: str, rows: Sequence[AgentVersion], served: Mapping[str, int], set_by: Mapping[str, Switch]
) -> Iterator[VersionRow]:
    own, switch = registry.find_own(slug), set_by.get(slug, ON)
    mine = [row for row in rows if row.slug == slug]
    faults = {row.version: find_fault(row) for row in mine}
    live = [
        row.version
        for row in mine
        if not faults[row.version] and served[name_queue(slug, row.version)]
    ]
    known = [own.version] if own else []
    known += [row.version for row in mine if not faults[row.version]]
    default = own.version if own else next(iter(live or known[-1:]), "")
    serving = switch.version if switch.version in known else default
    if own is not None:
        yield _make_row(slug, own.version, "", "", serving, switch, served[queue_of(own)])
    for row in mine:
        count = served[name_queue(slug, row.version)]
        yield _make_row(
            slug, row.version, row.environment, faults[row.version], serving, switch, count
        )


def _make_row(
    slug: str, version: str, environment: str, fault: str, serving: str, switch: Switch, count: int
) -> VersionRow:
    standing = f"not served: {fault}" if fault else ""
    if not fault and version == serving:
        standing = "serves"
    elif not fault and version == switch.canary:
        standing = f"canary, {switch.canary_percent:g} %"
    unfinished = Run.objects.filter(
        task__agent=slug,
        task__context__version=version if environment else "",
        status__in=[RunStatus.QUEUED, RunStatus.RUNNING],
    )
    return VersionRow(
        slug, version, environment, standing, count, len(unfinished.values_list("pk")[:COUNTED])
    )


def forget(slug: str, version: str) -> bool:
    """Remove an announced version. False if there is none. Raises ValueError while a worker has it, or runs wait for it."""
    queue = name_queue(slug, version)
    if queue in _list_queues_served():
        raise ValueError(
            f"Workers that have version {version} of {slug} are alive: stop them first"
        )
    with transaction.atomic():
        unfinished = Run.objects.filter(
            queue=queue, status__in=[RunStatus.QUEUED, RunStatus.RUNNING]
        )
        if unfinished.exists():
            raise ValueError(
                f"Runs wait for version {version} of {slug}: move its conversations first"
            )
        gone, _ = AgentVersion.objects.filter(slug=slug, version=version).delete()
        if gone:
            audit.note(Action.AGENT_FORGET, slug, detail={"version": version})
    if gone:
        pubsub.publish(pubsub.OverridesChanged())
    return bool(gone)


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

    It raises Overloaded if another request has kept it to another version at this moment.
    """

    def keep(task: int) -> None:
        context = Context.objects.filter(tasks=task)
        context.filter(version=None).update(version=version)
        if context.exclude(version=version).exists():
            raise Overloaded

    return keep


def move_conversations(slug: str, version: str, to: str) -> int:
    """Move all conversations of one version of an agent to another; return their number.

    Runs that wait go with them; a run that a worker holds ends where it is. Each batch is one transaction. Raises
    ValueError for a version that the host does not have.
    """
    switches.refuse_unknown(slug, to)
    own = registry.find_own(slug)
    is_own = own is not None and own.version == to
    queue = queue_of(own) if own is not None and is_own else name_queue(slug, to)
    moved = 0
    while batch := _move_batch(slug, version, "" if is_own else to):
        moved += batch
    waiting = Run.objects.filter(queue=name_queue(slug, version), status=RunStatus.QUEUED)
    waiting.exclude(task__context__version=version).update(queue=queue)
    with transaction.atomic():
        audit.note(
            Action.AGENT_MOVE, slug, detail={"from": version, "to": to, "conversations": moved}
        )
    pubsub.publish(pubsub.RunQueued(queue))
    return moved


def _move_batch(slug: str, version: str, to: str) -> int:
    some = Context.objects.filter(agent=slug, version=version).order_by("pk").values("pk")[:BATCH]
    return Context.objects.filter(pk__in=list(some.values_list("pk", flat=True))).update(version=to)


def fail_tasks_of(gone: Sequence[tuple[str, str]]) -> int:
    """Fail the tasks whose runs wait for one of these versions (slug, version) that no worker has; return their number.

    A version counts as gone if no worker that has it was seen for a while (`workers.absence`).
    """
    failed = 0
    seen = Worker.objects.filter(seen_at__gt=Now() - workers.absence())
    there = {queue for queues in seen.values_list("queues", flat=True) for queue in queues}
    for slug, version in gone:
        queue = name_queue(slug, version)
        if queue in there:
            continue
        late = Run.objects.filter(
            queue=queue, status=RunStatus.QUEUED, due_at__lt=Now() - workers.absence()
        )
        for key in late.order_by("pk").values_list("task_id", flat=True).distinct()[:BATCH]:
            failed += runs.fail_unstarted_task(
                key, f"No worker has version {version} of the agent any more."
            )
    return failed
