"""The offline checker: what was registered, what came, and the rows at the end; violations out.

Pure, and with its own idea of what is right: it imports nothing of the host. An invariant is a generator of findings, each a
sentence and its witness. What the farm wrote down are records (`lab/faultlab/history.py`):

`registered` (tag, task, url, token, whole, ends), `refused-url`, `deleted`, `rotated`, `arrived`, `answered`, `called-back`,
`intruded`, `looked-up`, `unrecorded` for what a process said it could not write down, and `fault` for what was done to the host's processes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lab.farm.rows import AttemptRow, ConfigRow, DeliveryRow, Rows
from lab.faultlab.checker import Violation
from lab.faultlab.dump import EventRow
from lab.faultlab.evidence import ENDED, WAITING
from lab.faultlab.folding import ARTIFACT, STATUS
from lab.faultlab.history import Record

__all__ = ["INVARIANTS", "Evidence", "Terms", "check", "latencies"]

#: Seconds before each attempt (Standard Webhooks), the share that chance may take away, and the most a receiver may ask for.
DELAYS = (0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
JITTER, MAX_ASKED_SECONDS = 0.1, 86_400
#: Seconds by which clocks of the processes and of the database may seem to differ.
BLUR = 0.05
#: Dialects that are told events; the others are told of the Task when it ends or waits.
EVENTS = {"v10", "dr"}

Finding = tuple[str, Sequence[object]]
Findings = Iterator[Finding]
Invariant = Callable[["Evidence"], Findings]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What was promised in this run."""

    #: Factor of all times of the schedule.
    scale: float
    #: Seconds that one delivery may take.
    limit: float
    #: Seconds after a request until its end is in the database.
    settling: float = 2.0
    #: Keys that the host signs with, as receivers hold them: `whsec_...` or `whpk_...`.
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All of it, arranged."""

    records: Sequence[Record]
    rows: Rows
    terms: Terms

    def of(self, what: str) -> list[Record]:
        """The records of one kind, in the order of their moments."""
        return sorted((record for record in self.records if record.what == what), key=lambda r: r.t)

    @cached_property
    def registered(self) -> dict[str, Record]:
        """By tag."""
        return {str(record["tag"]): record for record in self.of("registered")}

    @cached_property
    def arrivals(self) -> dict[str, list[Record]]:
        """By tag, in their order."""
        return by(self.of("arrived"), "tag")

    @cached_property
    def answers(self) -> dict[str, list[Record]]:
        """By `webhook-id`."""
        return by(self.of("answered"), "id")

    @cached_property
    def tasks(self) -> dict[str, int]:
        """Keys of tasks, by what clients call them."""
        return {row.id: row.task for row in self.rows.tasks}

    @cached_property
    def events(self) -> dict[int, list[EventRow]]:
        """By task, in order."""
        found: defaultdict[int, list[EventRow]] = defaultdict(list)
        for row in self.rows.events:
            found[row.task].append(row)
        return found

    @cached_property
    def by_id(self) -> dict[str, DeliveryRow]:
        """Deliveries by `webhook-id`."""
        return {row.webhook_id: row for row in self.rows.deliveries}

    @cached_property
    def attempts(self) -> dict[int, list[AttemptRow]]:
        """By delivery, in order."""
        found: defaultdict[int, list[AttemptRow]] = defaultdict(list)
        for row in self.rows.attempts:
            found[row.delivery].append(row)
        return found

    @cached_property
    def configs(self) -> dict[str, ConfigRow]:
        """Webhooks that are there at the end, by tag."""
        return {tag_of(row.url): row for row in self.rows.configs}

    @cached_property
    def deliveries(self) -> dict[str, list[DeliveryRow]]:
        """By tag; those of webhooks that were taken away by what arrived of them."""
        tags = {row.row: tag for tag, row in self.configs.items()}
        came = {str(record["id"]): tag for tag, some in self.arrivals.items() for record in some}
        found: defaultdict[str, list[DeliveryRow]] = defaultdict(list)
        for row in self.rows.deliveries:
            tag = tags.get(row.config or 0) or came.get(row.webhook_id)
            if tag is not None:
                found[tag].append(row)
        return found

    @cached_property
    def removed(self) -> dict[str, float]:
        """When webhooks were taken away, by tag."""
        return {str(record["tag"]): record.t for record in self.of("deleted")}

    def excused(self, since: float, until: float) -> bool:
        """Was a process of the host hurt between these moments?"""
        return any(since - BLUR <= fault.t <= until for fault in self.of("fault"))

    def lost(self, earlier: Record, later: Record) -> bool:
        """Did a process say between these that it could not write down what became of something?"""
        return any(earlier.t <= said.t <= later.t for said in self.of("unrecorded"))


def by(records: Iterable[Record], name: str) -> dict[str, list[Record]]:
    """Records by a member."""
    found: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        found[str(record[name])].append(record)
    return found


def tag_of(url: str) -> str:
    """What a webhook of the farm is called."""
    return parse_qs(urlsplit(url).query).get("tag", [""])[0]


# --- accounted for ----------------------------------------------------------------------------


def every_event_is_accounted_for(e: Evidence) -> Findings:
    """Each event that a webhook is told of is in one delivery, which is settled: delivered, or dead with its attempts."""
    for tag, registered in e.registered.items():
        task = e.tasks.get(str(registered["task"]))
        if task is None:
            yield f"{tag}: its task is not there", [registered]
        elif tag not in e.removed:
            yield from _accounted(e, tag, registered, task)


def _accounted(e: Evidence, tag: str, registered: Record, task: int) -> Findings:
    config = e.configs.get(tag)
    if config is None:
        yield f"{tag}: it was not taken away, and is not there", [registered]
        return
    told = [row.number for row in e.events[task] if is_told(row, config.dialect)]
    covered = [n for row in e.deliveries.get(tag, []) for n in _covered(e, row, config.dialect)]
    missing, twice = (
        sorted(set(told) - set(covered)),
        [n for n, count in Counter(covered).items() if count > 1],
    )
    if missing:
        yield (
            f"{tag}: events {missing[:20]} of {len(told)} are in no delivery",
            [registered, config],
        )
    if twice:
        yield f"{tag}: events {twice[:20]} are in two deliveries", [registered, config]
    if config.active or config.token:
        yield f"{tag}: the webhook is still waited for or held", [config]


def is_told(event: EventRow, dialect: str) -> bool:
    """Is a webhook of this dialect told of it?"""
    if dialect in EVENTS:
        return event.kind in {STATUS, ARTIFACT}
    return event.kind == STATUS and json.loads(event.body)["status"]["state"] in ENDED | WAITING


def _covered(e: Evidence, row: DeliveryRow, dialect: str) -> list[int]:
    """Numbers of the events a delivery tells of: pieces of an artifact may lie around what is no webhook's business."""
    numbers = [event.number for event in e.events[row.task] if is_told(event, dialect)]
    return [n for n in numbers if row.number <= n <= row.through]


def nothing_is_left(e: Evidence) -> Findings:
    """No delivery waits, and none is dead but by ten attempts, a 410, or because it was given up, with the reason."""
    for row in e.rows.deliveries:
        attempts = len(e.attempts[row.row])
        if row.status == "pending":
            yield f"{row.webhook_id} still waits", [row]
        elif row.status == "dead" and not row.reason:
            yield f"{row.webhook_id} is dead, and nobody says why", [row]
        elif row.status == "delivered" and not attempts:
            yield f"{row.webhook_id} was delivered without an attempt", [row]
        elif attempts != row.attempts:
            yield f"{row.webhook_id} has {attempts} attempts, and says {row.attempts}", [row]
        elif attempts > len(DELAYS):
            yield f"{row.webhook_id} was tried {attempts} times", [row]


def ends_as_expected(e: Evidence) -> Findings:
    """What is sent to a kind of receiver ends as that kind has it."""
    for tag, registered in e.registered.items():
        allowed = ENDS[str(registered["ends"])]
        wrong = [row for row in e.deliveries.get(tag, []) if row.status not in allowed]
        if wrong:
            yield (
                f"{tag}: {len(wrong)} deliveries are not {'/'.join(sorted(allowed))}",
                [registered, wrong[0]],
            )
        if registered["ends"] == "gone":
            yield from _gone(e, tag)


#: How deliveries may end, by what their receiver is (`ways.Ends`).
ENDS = {
    "delivered": {"delivered"},
    "dead": {"dead"},
    "gone": {"dead"},
    "either": {"delivered", "dead"},
    "removed": {"delivered", "cancelled"},
}


def _gone(e: Evidence, tag: str) -> Findings:
    config, came = e.configs.get(tag), e.arrivals.get(tag, [])
    if config is not None and not config.disabled_reason:
        yield f"{tag}: was answered 410 and is not disabled", [config]
    faults = len(e.of("fault"))
    if len(came) > 1 + faults:
        yield f"{tag}: {len(came)} requests after a 410", came[:3]


# --- what came --------------------------------------------------------------------------------


def what_came_was_meant(e: Evidence) -> Findings:
    """Every request is of a delivery to this webhook, and has its frozen body."""
    for tag, came in e.arrivals.items():
        for record in came:
            row = e.by_id.get(str(record["id"]))
            if tag not in e.registered:
                yield f"{record['id']} came for nobody's webhook", [record]
            elif row is None:
                yield f"{record['id']} came, and is no delivery", [record]
            elif row.body != record["body"]:
                yield f"{record['id']} came with another body", [record, row]


def what_was_taken_is_delivered(e: Evidence) -> Findings:
    """A delivery is delivered if, and only if, its receiver said so, unless it was hurt meanwhile."""
    for row in e.rows.deliveries:
        answers = e.answers.get(row.webhook_id, [])
        taken = [record for record in answers if 200 <= int(record["status"]) < 300]
        last = e.attempts[row.row][-1:]
        if row.status == "delivered" and not taken:
            yield f"{row.webhook_id} is delivered, and nobody took it", [row]
        if row.status == "delivered" and last and not 200 <= (last[0].status or 0) < 300:
            yield f"{row.webhook_id} is delivered by an attempt that failed", [row, *last]
        if row.status == "dead" and taken and not _late(e, row, taken):
            yield f"{row.webhook_id} is dead, and was taken", [row, taken[0]]


def _late(e: Evidence, row: DeliveryRow, taken: list[Record]) -> bool:
    """Was the yes too late, or the process that heard it hurt?"""
    came = [record for record in e.of("arrived") if record["id"] == row.webhook_id]
    first = max((record.t for record in came if record.t <= taken[0].t), default=taken[0].t)
    return taken[0].t - first > e.terms.limit * 0.9 or e.excused(
        first, taken[0].t + e.terms.settling
    )


def in_order(e: Evidence) -> Findings:
    """What is new comes in the order of the events; nothing is tried before what is older is settled."""
    for tag, came in e.arrivals.items():
        rows = [e.by_id[id_] for id_ in dict.fromkeys(str(r["id"]) for r in came) if id_ in e.by_id]
        for one, other in pairwise(rows):
            if other.number <= one.through:
                yield f"{tag}: {other.webhook_id} came after a later event", [one, other]
    for tag, rows in e.deliveries.items():
        for one, other in pairwise(sorted(rows, key=lambda row: row.number)):
            yield from _one_after_the_other(e, tag, one, other)


def _one_after_the_other(e: Evidence, tag: str, one: DeliveryRow, other: DeliveryRow) -> Findings:
    first = e.attempts[other.row][:1]
    if first and (
        one.settled_at is None or first[0].started_at < one.settled_at - e.terms.settling
    ):
        yield (
            f"{tag}: {other.webhook_id} was tried before {one.webhook_id} was settled",
            [one, first[0]],
        )


def duplicates_are_excused(e: Evidence) -> Findings:
    """What was taken comes again only if a process was hurt while that was on its way, or said that it could not write it down.

    It comes under the same id.
    """
    for tag, came in e.arrivals.items():
        for id_, some in by(came, "id").items():
            for earlier, later in pairwise(some):
                taken = _taken_between(e, id_, earlier.t, later.t)
                until = (taken or earlier).t + e.terms.settling
                excused = (
                    e.excused(earlier.t, until) or on_its_way(e, later) or e.lost(earlier, later)
                )
                if taken is not None and not excused:
                    yield f"{tag}: {id_} came again after it was taken", [earlier, taken, later]
    bodies: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for tag, came in e.arrivals.items():
        for record in came:
            bodies[tag, str(record["body"])].add(str(record["id"]))
    for (tag, body), ids in bodies.items():
        if len(ids) > 1 and tag_says_all(e, tag):
            yield f"{tag}: the same was sent under {len(ids)} ids", [body[:200], sorted(ids)]


def on_its_way(e: Evidence, record: Record) -> bool:
    """Was a process hurt after this request was made, and before it came? Then it had been frozen."""
    made = str(record["timestamp"])
    return made.isdecimal() and e.excused(int(made), record.t)


def tag_says_all(e: Evidence, tag: str) -> bool:
    """Are all events of this webhook's task different?"""
    return bool(e.registered.get(tag) and e.registered[tag].get("distinct"))


def _taken_between(e: Evidence, id_: str, since: float, until: float) -> Record | None:
    """The yes that came in time and between these moments, if one did."""
    for record in e.answers.get(id_, []):
        timely = record.t - since < e.terms.limit * 0.9
        if since <= record.t < until and 200 <= int(record["status"]) < 300 and timely:
            return record
    return None


def nothing_after_it_was_taken_away(e: Evidence) -> Findings:
    """After a webhook is taken away comes at the most what was on its way: one."""
    for tag, moment in e.removed.items():
        late = [record for record in e.arrivals.get(tag, []) if record.t > moment]
        if len(late) > 1:
            yield f"{tag}: {len(late)} requests after it was taken away", late[:3]
        if tag in e.configs:
            yield f"{tag} was taken away and is there", [e.configs[tag]]


# --- who says so ------------------------------------------------------------------------------


def every_request_verifies(e: Evidence) -> Findings:
    """Signed by the keys the receiver has, of the moment it was sent, with the token it registered."""
    changed = {str(record["tag"]): record for record in e.of("rotated")}
    for tag, came in e.arrivals.items():
        if tag not in e.registered:
            continue
        token, rotated = str(e.registered[tag]["token"]), changed.get(tag)
        for record in came:
            allowed = {token}
            if rotated is not None and record.t > rotated.t:
                settled = record.t > rotated.t + e.terms.limit
                allowed = {str(rotated["token"])} | (set() if settled else allowed)
            why = min(_unverified(e, record, one) for one in allowed)
            if why:
                yield f"{tag}: {record['id']}: {why}", [record]


def _unverified(e: Evidence, record: Record, token: str) -> str:
    """Why this request proves nothing to whoever registered this token; empty if all is well."""
    own = token.startswith("whsec_")
    if record["token"] != ("" if own else token):
        return "its token is not the one that was registered"
    slow = e.terms.limit + 2
    if abs(record.t - int(record["timestamp"] or 0)) > slow and not on_its_way(e, record):
        return "its timestamp is not of now"
    body = str(record["body"]).encode("utf-8", "surrogateescape")
    signed = b".".join((str(record["id"]).encode(), str(record["timestamp"]).encode(), body))
    keys = (token,) if own else e.terms.keys
    said = str(record["signature"]).split()
    bad = [key[:6] for key in keys if not any(_signed(key, one, signed) for one in said)]
    return f"{len(bad)} keys did not sign it" if bad or not keys else ""


def _signed(key: str, signature: str, signed: bytes) -> bool:
    kind, _, coded = key.partition("_")
    version, _, said = signature.partition(",")
    raw = base64.b64decode(coded)
    if kind == "whsec":
        made = base64.b64encode(hmac.digest(raw, signed, hashlib.sha256)).decode()
        return (version, said) == ("v1", made)
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(said), signed)
    except (InvalidSignature, ValueError):
        return False
    return version == "v1a"


# --- when -------------------------------------------------------------------------------------


def attempts_keep_to_the_schedule(e: Evidence) -> Findings:
    """No attempt comes earlier than the schedule has it."""
    for row in e.rows.deliveries:
        for one, other in pairwise(e.attempts[row.row]):
            wait = DELAYS[min(one.number, len(DELAYS) - 1)] * (1 - JITTER) * e.terms.scale
            earliest = one.started_at + one.seconds + wait
            if other.started_at < earliest - BLUR:
                early = earliest - other.started_at
                yield (
                    f"{row.webhook_id}: attempt {other.number} came {early:.2f} s early",
                    [one, other],
                )


def who_asks_to_wait_is_left_alone(e: Evidence) -> Findings:
    """Who asks to wait hears nothing until then, or for a day of the schedule, from any webhook, but what is on its way."""
    paths = by(e.of("arrived"), "path")
    for answer in e.of("answered"):
        until = answer.t + min(answer.get("wait", 0.0), MAX_ASKED_SECONDS * e.terms.scale) - BLUR
        for record in paths.get(str(answer.get("path")), []) if until > answer.t else ():
            mine = record["id"] == answer["id"] and record.t > answer.t
            if record.t < until and (mine or record.t > answer.t + e.terms.settling):
                yield f"{record['path']} asked to wait, and was called", [answer, record]


# --- where nobody may go, and what nobody may read ---------------------------------------------


def nobody_went_astray(e: Evidence) -> Findings:
    """No canary was called; no name was looked up but those of webhooks; what is refused was refused at once."""
    for record in e.of("intruded"):
        yield "a canary was called", [record]
    hosts = {urlsplit(str(record["url"])).hostname for record in e.registered.values()}
    for name in {str(record["name"]) for record in e.of("looked-up")} - hosts:
        yield f"{name} was looked up, and is no webhook's", []
    for record in e.of("registered-anyway"):
        yield f"{record['url']} was registered", [record]


def callbacks_are_one_task(e: Evidence) -> Findings:
    """A receiver that sends twice under one key has made one task."""
    for record in e.of("called-back"):
        if len(set(record["tasks"])) != 1:
            yield (
                f"{record['id']}: called back, and made {len(set(record['tasks']))} tasks",
                [record],
            )


def no_secret_is_told(e: Evidence) -> Findings:
    """Where somebody looked for secrets of receivers, none was found."""
    for record in e.of("secret-found"):
        yield f"a secret is in {record['where']}", [record]


INVARIANTS: dict[str, Invariant] = {
    "W1": every_event_is_accounted_for,
    "W2": nothing_is_left,
    "W3": ends_as_expected,
    "W4": what_came_was_meant,
    "W5": what_was_taken_is_delivered,
    "W6": in_order,
    "W7": duplicates_are_excused,
    "W8": nothing_after_it_was_taken_away,
    "W9": every_request_verifies,
    "W10": attempts_keep_to_the_schedule,
    "W11": nobody_went_astray,
    "W12": callbacks_are_one_task,
    "W13": no_secret_is_told,
    "W14": who_asks_to_wait_is_left_alone,
}


def check(records: Sequence[Record], rows: Rows, terms: Terms) -> list[Violation]:
    """All that is violated; none if nothing was registered is a violation too."""
    evidence = Evidence(records, rows, terms)
    if not evidence.registered:
        return [Violation("W0", "nothing was registered", [])]
    return [
        Violation(name, text, witness)
        for name, invariant in INVARIANTS.items()
        for text, witness in invariant(evidence)
    ]


def latencies(records: Sequence[Record], rows: Rows, tags: set[str]) -> list[float]:
    """Seconds from the commit of an event to its first arrival, of these webhooks, ascending."""
    made = {(row.task, row.number): row.created_at for row in rows.events}
    ids = {row.webhook_id: made.get((row.task, row.through), math.nan) for row in rows.deliveries}
    first: dict[str, float] = {}
    for record in records:
        if record.what == "arrived" and record["tag"] in tags:
            id_ = str(record["id"])
            first[id_] = min(record.t, first.get(id_, math.inf))
    return sorted(t - ids[id_] for id_, t in first.items() if id_ in ids)
