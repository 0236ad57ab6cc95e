"""Verifying the audit log from its page, some seconds at a time: a log of any length is verified in the end.

How far it has come travels in the page, signed, so that nobody can skip a part.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.core import signing

from a2a_tasks.store.audit_proof import Broken, Proof, verify

__all__ = ["SECONDS", "Found", "verified_for"]

#: For which one answer verifies.
SECONDS = 3.0
SALT = "a2a.audit.verifying"
#: Seconds for which it can be gone on with.
FRESH = 3600


@dataclass(frozen=True, kw_only=True)
class Found:
    """What is known by now."""

    #: "verifying", "whole" or "broken".
    word: str
    proof: Proof
    #: The first thing that is wrong.
    broken: str = ""
    #: To go on with.
    so_far: str = ""

    @property
    def percent(self) -> int:
        """How much of it is verified."""
        return min(100, 100 * self.proof.verified // self.proof.total) if self.proof.total else 100


def verified_for(so_far: str, seconds: float | None = None) -> Found:
    """Verify from there for so long. What is not of an answer of ours begins anew."""
    proof = _opened(so_far)
    end = time.monotonic() + (SECONDS if seconds is None else seconds)
    began = proof.verified if proof else 0
    try:
        for now in verify(so_far=proof):
            proof = now
            if time.monotonic() >= end and began < now.verified < now.total:
                return Found(word="verifying", proof=now, so_far=_closed(now))
    except Broken as fault:
        return Found(word="broken", proof=proof or Proof(), broken=str(fault))
    assert proof is not None  # noqa: S101 - it yields at least once
    return Found(word="whole", proof=proof)


def _closed(proof: Proof) -> str:
    told = dataclasses.asdict(proof) | {"beginnings": sorted(proof.beginnings)}
    return signing.dumps(told, salt=SALT, compress=True)


def _opened(so_far: str) -> Proof | None:
    try:
        told: dict[str, Any] = signing.loads(so_far, salt=SALT, max_age=FRESH)
    except signing.BadSignature:
        return None
    counters = {name: Counter(told[name]) for name in ("erased", "vouched")}
    return Proof(**{**told, **counters, "beginnings": set(told["beginnings"])})
