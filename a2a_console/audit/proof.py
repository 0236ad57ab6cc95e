"""The verification of the audit chain: no sealed entry has been altered, removed, inserted or moved since.

The chain is read in slices, in its order. Entries that are not sealed yet are only counted.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from a2a_tasks.audit import Action
from a2a_tasks.audit.chain import BEGINNING, REDACTED, Salts, hash_link, mac
from a2a_tasks.audit.keys import keys
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.store.audit_seals import entry_of, list_unsealed
from a2a_tasks.store.audit_triggers import are_installed

__all__ = ["Broken", "Proof", "head", "verify"]

#: The number of links that are read at once.
SLICE = 2000


class Broken(Exception):
    """The log is not as it was written; the text names the first fault."""


@dataclass
class Proof:
    """The progress of a verification and its findings."""

    #: The number of all links, and of the verified ones.
    total: int = 0
    verified: int = 0
    #: The numbers of the first existing link and of the last verified one, and the hash of the latter.
    first: int = 0
    last: int = 0
    hash: str = BEGINNING
    unsealed: int = 0
    #: The number of entries whose actor or object was replaced, by the replacement.
    erased: Counter[str] = field(default_factory=Counter)
    #: The number of replacements that the entries of erasures record.
    recorded: Counter[str] = field(default_factory=Counter)
    #: The first links after retention, as entries of the log record them.
    beginnings: set[int] = field(default_factory=set)
    #: True if the triggers exist that protect the rows.
    guarded: bool = True


def head() -> tuple[int, str]:
    """Return number and hash of the newest link, to be stored elsewhere; (0, zeros) for an empty log."""
    last = AuditSeal.objects.order_by("-pk").values_list("number", "hash").first()
    return last or (0, BEGINNING)


def verify(since: str = "", *, so_far: Proof | None = None) -> Iterator[Proof]:
    """Verify the whole log, and yield the proof after each slice. Raises Broken at the first fault.

    `since`: a hash that once was the newest; the log must still contain it. `so_far`: an earlier proof, from which to
    continue.
    """
    proof = so_far or _make_start()
    wanted = since or proof.hash
    met = wanted == proof.hash
    yield proof
    while links := list(AuditLink.objects.filter(pk__gt=proof.last).order_by("pk")[:SLICE]):
        entries = AuditEntry.objects.in_bulk([link.entry_id for link in links])
        for link in links:
            _verify(link, entries.get(link.entry_id), proof)
            met = met or link.hash == wanted
        _verify_seals(links)
        yield proof
    _close(proof)
    if not met:
        raise Broken(f"no link has the hash {since}: the log was truncated or rewritten")
    yield proof


def _make_start() -> Proof:
    """Return a proof at the begin of the chain: at its first link, or after the part that retention removed."""
    first = AuditLink.objects.order_by("pk").first()
    newest = AuditSeal.objects.order_by("-pk").first()
    proof = Proof(total=AuditLink.objects.count(), guarded=are_installed())
    begins = first.number if first else newest.number + 1 if newest else 1
    proof.first, proof.last = begins, begins - 1
    if begins > 1:
        seal = AuditSeal.objects.filter(pk=begins - 1).first()
        if seal is None or not _is_ours(seal):
            raise Broken(f"everything before link {begins} is gone, and no seal vouches for it")
        proof.hash = seal.hash
    return proof


def _verify(link: AuditLink, entry: AuditEntry | None, proof: Proof) -> None:
    """Verify one link: its entry must be the one that was chained."""
    if link.number != proof.last + 1:
        raise Broken(f"links {proof.last + 1} to {link.number - 1} are gone")
    if entry is None:
        raise Broken(f"entry {link.entry_id}, of link {link.number}, is gone")
    salts = Salts(link.actor_salt, link.object_salt)
    if hash_link(link.number, entry_of(entry), salts, proof.hash) != link.hash:
        raise Broken(f"entry {link.entry_id}, of link {link.number}, is not what was sealed")
    _count_records(entry, salts, proof)
    proof.last, proof.hash = link.number, link.hash
    proof.verified += 1


def _count_records(entry: AuditEntry, salts: Salts, proof: Proof) -> None:
    """Count the entry's records of purges and erasures, and its own replaced names."""
    if entry.action == Action.AUDIT_PURGE:
        proof.beginnings.add(int(entry.object))
    if entry.action == Action.PRIVACY_ERASE:
        proof.recorded[entry.object] += int(msgspec.json.decode(entry.detail)["entries"])
    for salt, text in zip(salts, (entry.actor, entry.object), strict=True):
        if salt.startswith(REDACTED):
            proof.erased[text] += 1


def _verify_seals(links: list[AuditLink]) -> None:
    """Verify the seals on these links: each must be made with a key of this host."""
    hashes = {link.number: link.hash for link in links}
    for seal in AuditSeal.objects.filter(pk__range=(links[0].number, links[-1].number)):
        if seal.hash != hashes[seal.number] or not _is_ours(seal):
            raise Broken(f"the seal on link {seal.number} is not of this host's keys")


def _is_ours(seal: AuditSeal) -> bool:
    return any(hmac.compare_digest(seal.mac, mac(key, seal.number, seal.hash)) for key in keys())


def _close(proof: Proof) -> None:
    """Check the end of the chain: the last link is sealed, and no part is missing without an entry."""
    newest = head()[0]
    if newest < proof.last and not AuditSeal.objects.filter(pk=proof.last).exists():
        raise Broken(f"link {proof.last}, the last one, is not sealed")
    if newest > proof.last and not AuditLink.objects.filter(pk=newest).exists():
        raise Broken(f"links {proof.last + 1} to {newest} are gone")
    if proof.first > 1 and proof.first - 1 not in proof.beginnings:
        raise Broken(f"everything before link {proof.first} is gone, and no entry says so")
    for name, count in proof.erased.items():
        if count > proof.recorded[name]:
            raise Broken(f"{count} names were replaced by {name!r}, and no entry says so")
    proof.unsealed = list_unsealed(everywhere=True).count()
