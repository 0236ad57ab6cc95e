"""Verifying the chain: nothing that was sealed has been altered, removed, put in or moved since.

Read in pieces, in the order of the chain. What is not sealed yet is counted; nothing vouches for it.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from a2a_tasks.audit import Action
from a2a_tasks.audit.chain import BEGINNING, REDACTED, Salts, linked, mac
from a2a_tasks.audit.keys import keys
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.store.audit_seals import entry_of, unsealed
from a2a_tasks.store.audit_triggers import installed

__all__ = ["Broken", "Proof", "head", "verify"]

#: Links read at once.
SLICE = 2000


class Broken(Exception):
    """The log is not as it was written; the text names the first thing that is wrong."""


@dataclass
class Proof:
    """How far verification has come, and what it met."""

    #: Links there are in all, and those verified.
    total: int = 0
    verified: int = 0
    #: Numbers of the first link there is and of the last one verified, and the hash of that.
    first: int = 0
    last: int = 0
    hash: str = BEGINNING
    unsealed: int = 0
    #: Entries whose actor or object was taken out, by what stands there instead.
    erased: Counter[str] = field(default_factory=Counter)
    #: How many the entries of erasures say there are.
    vouched: Counter[str] = field(default_factory=Counter)
    #: Where the log begins after retention, as its own entries say.
    beginnings: set[int] = field(default_factory=set)
    #: Are the triggers there that keep rows as they are?
    guarded: bool = True


def head() -> tuple[int, str]:
    """Number and hash of the newest link, for keeping elsewhere; (0, zeros) of an empty log."""
    last = AuditSeal.objects.order_by("-pk").values_list("number", "hash").first()
    return last or (0, BEGINNING)


def verify(since: str = "", *, so_far: Proof | None = None) -> Iterator[Proof]:
    """Verify everything, and yield the same proof again after each piece. Raises Broken at the first that is wrong.

    `since`: a hash that was the newest once; the log must still have it. `so_far`: a proof that was yielded before, to go
    on from there.
    """
    proof = so_far or _opened()
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
        raise Broken(f"no link has the hash {since}: the log was cut short, or written anew")
    yield proof


def _opened() -> Proof:
    """Where the chain begins: with its first link, or after what retention removed."""
    first = AuditLink.objects.order_by("pk").first()
    newest = AuditSeal.objects.order_by("-pk").first()
    proof = Proof(total=AuditLink.objects.count(), guarded=installed())
    begins = first.number if first else newest.number + 1 if newest else 1
    proof.first, proof.last = begins, begins - 1
    if begins > 1:
        seal = AuditSeal.objects.filter(pk=begins - 1).first()
        if seal is None or not _is_ours(seal):
            raise Broken(f"everything before link {begins} is gone, and no seal vouches for it")
        proof.hash = seal.hash
    return proof


def _verify(link: AuditLink, entry: AuditEntry | None, proof: Proof) -> None:
    """One link, whose entry must be what was chained."""
    if link.number != proof.last + 1:
        raise Broken(f"links {proof.last + 1} to {link.number - 1} are gone")
    if entry is None:
        raise Broken(f"entry {link.entry_id}, of link {link.number}, is gone")
    salts = Salts(link.actor_salt, link.object_salt)
    if linked(link.number, entry_of(entry), salts, proof.hash) != link.hash:
        raise Broken(f"entry {link.entry_id}, of link {link.number}, is not what was sealed")
    _heed(entry, salts, proof)
    proof.last, proof.hash = link.number, link.hash
    proof.verified += 1


def _heed(entry: AuditEntry, salts: Salts, proof: Proof) -> None:
    """Note what the entry says of the log itself, and what was taken out of it."""
    if entry.action == Action.AUDIT_PURGE:
        proof.beginnings.add(int(entry.object))
    if entry.action == Action.PRIVACY_ERASE:
        proof.vouched[entry.object] += int(msgspec.json.decode(entry.detail)["entries"])
    for salt, text in zip(salts, (entry.actor, entry.object), strict=True):
        if salt.startswith(REDACTED):
            proof.erased[text] += 1


def _verify_seals(links: list[AuditLink]) -> None:
    """The seals on these links, each made with a key of this host."""
    hashes = {link.number: link.hash for link in links}
    for seal in AuditSeal.objects.filter(pk__range=(links[0].number, links[-1].number)):
        if seal.hash != hashes[seal.number] or not _is_ours(seal):
            raise Broken(f"the seal on link {seal.number} is not of this host's keys")


def _is_ours(seal: AuditSeal) -> bool:
    return any(hmac.compare_digest(seal.mac, mac(key, seal.number, seal.hash)) for key in keys())


def _close(proof: Proof) -> None:
    """What can be said only at the end: that it is sealed, and that nothing is missing without a word."""
    newest = head()[0]
    if newest < proof.last and not AuditSeal.objects.filter(pk=proof.last).exists():
        raise Broken(f"link {proof.last}, the last one, is not sealed")
    if newest > proof.last and not AuditLink.objects.filter(pk=newest).exists():
        raise Broken(f"links {proof.last + 1} to {newest} are gone")
    if proof.first > 1 and proof.first - 1 not in proof.beginnings:
        raise Broken(f"everything before link {proof.first} is gone, and no entry says so")
    for name, count in proof.erased.items():
        if count > proof.vouched[name]:
            raise Broken(f"{count} names were replaced by {name!r}, and no entry says so")
    proof.unsealed = unsealed(everywhere=True).count()
