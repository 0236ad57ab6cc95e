"""Previews of an agent's card in the form of each protocol version, with flaws and signature."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.agents import Agent
from a2a_tasks.conf import conf
from a2a_tasks.operations.cards import make_card
from a2a_tasks.protocol.card_flaws import flaws
from a2a_tasks.protocol.dialects import CLASSES
from a2a_tasks.signatures import ring
from a2a_tasks.signatures.verification import ALLOWED, CardUnverified, verify

__all__ = ["Preview", "previews"]

#: The label of each form on the page.
LABELS: Mapping[str, str] = {
    **{each.code: each.title for each in reversed(CLASSES)},
    "hybrid": "1.0 and 0.3 in one",
    "legacy": "agent.json",
}


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A card in one form."""

    form: str
    label: str
    #: Indented JSON.
    text: str
    flaws: list[str]
    #: "signed" (by a published key, verified just now), "unsigned", "unverified", or "–" (this form has no signatures).
    signature: str
    #: The key that signed, or the reason why none did.
    note: str


def previews(agent: Agent, base_url: str) -> Iterator[Preview]:
    """Yield the card in every form, as a host with this base URL (without a slash at its end) serves it."""
    for form, label in LABELS.items():
        yield _preview(agent, base_url, form, label)


def _preview(agent: Agent, base_url: str, form: str, label: str) -> Preview:
    try:
        card = dict(make_card(agent, base_url, form, ring.seal()))
    except ValueError as flaw:  # the card cannot be signed, so it is not served either
        return Preview(
            form=form,
            label=label,
            text="",
            flaws=[str(flaw)],
            signature="unverified",
            note=str(flaw),
        )
    signature, note = _signature(card, form)
    text = json.dumps(card, indent=2, ensure_ascii=False)
    return Preview(
        form=form, label=label, text=text, flaws=flaws(card, form), signature=signature, note=note
    )


def _signature(card: Mapping[str, Any], form: str) -> tuple[str, str]:
    """Verify the signature as a reader with the published keys of this host would."""
    if "signatures" not in card:
        why = _explain_unsigned()
        return ("unsigned", why) if why else ("–", "this protocol version has no signatures")
    keys = [key.as_dict(private=False) for key in ring.list_published()]
    try:
        found = verify(
            card, keys, now=time.time(), algorithms=ALLOWED.keys(), loosely=form == "hybrid"
        )
    except CardUnverified as fault:
        return "unverified", "; ".join(fault.reasons)
    return "signed", f"key {found.header.kid} ({found.header.algorithm})"


def _explain_unsigned() -> str:
    if not conf.SIGN_CARDS:
        return "A2A_SIGN_CARDS is 0"
    if not conf.PUBLIC_URL:
        return "not signed: set A2A_PUBLIC_URL"
    return "" if ring.signers() else "no key signs at this moment"
