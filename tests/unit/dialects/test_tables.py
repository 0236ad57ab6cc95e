"""The tables by dialect: a new dialect needs a row in each of the first, and may need one in the others."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from a2a_console.admin.agents import card_previews
from a2a_grpc.binding import messages
from a2a_push.operations import webhook
from a2a_tasks.agents import cards
from a2a_tasks.bindings import card_endpoint
from a2a_tasks.operations.cards import FORMS
from a2a_tasks.protocol import card_flaws
from a2a_tasks.protocol.dialects import CLASSES, DIALECTS
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.protocol.versions import SUPPORTED
from a2a_tasks.signatures import forms

#: Forms of cards for readers of several dialects.
MIXED = {"hybrid", "legacy"}
REQUIRED: dict[str, Collection[str]] = {
    "PINNED in a2a_tasks/protocol/mounts.py": MOUNTS,
    "REQUIRED in a2a_tasks/protocol/card_flaws.py": card_flaws.REQUIRED,
    "LABELS in a2a_console/admin/agents/card_previews.py": card_previews.LABELS,
}
#: Dialects with signed cards, gRPC, rules for webhooks of their own, an interface in the card of 1.0, a card by default.
OPTIONAL: dict[str, Collection[str]] = {
    "SIGNED in a2a_tasks/signatures/forms.py": forms.SIGNED,
    "FORMS in a2a_grpc/binding/messages.py": messages.FORMS,
    "ONE_A_TASK in a2a_push/operations/webhook.py": webhook.ONE_A_TASK,
    "UNNAMED in a2a_push/operations/webhook.py": webhook.UNNAMED,
    "INTERFACES in a2a_tasks/agents/cards.py": {code for code, *_ in cards.INTERFACES},
    "DEFAULTS in a2a_tasks/bindings/card_endpoint.py": card_endpoint.DEFAULTS.values(),
}


@pytest.mark.parametrize("table", REQUIRED)
def test_a_required_table_has_a_row_for_each_dialect(table: str) -> None:
    assert set(REQUIRED[table]) - MIXED == {dialect.code for dialect in CLASSES}


@pytest.mark.parametrize("table", OPTIONAL)
def test_an_optional_table_has_rows_of_dialects_alone(table: str) -> None:
    assert set(OPTIONAL[table]) - MIXED <= DIALECTS.keys()


def test_the_version_of_a_dialect_is_supported() -> None:
    assert {dialect.version for dialect in CLASSES} - {""} <= set(SUPPORTED)


def test_each_form_of_a_card_has_required_members() -> None:
    assert FORMS.keys() == card_flaws.REQUIRED.keys()
