"""The verification of the audit log from its page, some seconds per request, so that a log may have any length.

The progress travels in the page. It is signed, so that no part can be skipped.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.core import signing

from a2a_console.audit.proof import Broken, Proof, verify

__all__ = ["SECONDS", "VerificationProgress", "verify_for"]

#: The time that one request spends on verification.
SECONDS = 3.0
SALT = "a2a.audit.verifying"
#: Seconds for which a signed progress can be continued.
FRESH = 3600


@dataclass(frozen=True, kw_only=True)
class VerificationProgress:
    """The result of a verification so far."""

    #: "verifying", "intact" or "broken".
    word: str
    proof: Proof
    #: The first fault.
    broken: str = ""
    #: The signed progress, to continue with.
    so_far: str = ""

    @property
    def percent(self) -> int:
        """The verified part of the log."""
        return min(100, 100 * self.proof.verified // self.proof.total) if self.proof.total else 100


def verify_for(so_far: str) -> VerificationProgress:
    """Continue the signed progress for some seconds. Without a valid signature, begin anew."""
    proof = _open_progress(so_far)
    end = time.monotonic() + SECONDS
    began = proof.verified if proof else 0
    try:
        for now in verify(so_far=proof):
            proof = now
            if time.monotonic() >= end and began < now.verified < now.total:
                state = dataclasses.asdict(now) | {"beginnings": sorted(now.beginnings)}
                sealed = signing.dumps(state, salt=SALT, compress=True)
                return VerificationProgress(word="verifying", proof=now, so_far=sealed)
    except Broken as fault:
        return VerificationProgress(word="broken", proof=proof or Proof(), broken=str(fault))
    assert proof is not None  # noqa: S101 - verify yields at least once
    return VerificationProgress(word="intact", proof=proof)


def _open_progress(so_far: str) -> Proof | None:
    try:
        state: dict[str, Any] = signing.loads(so_far, salt=SALT, max_age=FRESH)
    except signing.BadSignature:
        return None
    counters = {name: Counter(state[name]) for name in ("erased", "recorded")}
    return Proof(**{**state, **counters, "beginnings": set(state["beginnings"])})
