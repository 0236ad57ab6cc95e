"""The tables by dialect: a new dialect may need a row in each."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from a2a_grpc.binding import messages
from a2a_tasks.agents import cards
from a2a_tasks.bindings import card_endpoint
from a2a_tasks.operations.cards import FORMS
from a2a_tasks.protocol import card_flaws
from a2a_tasks.protocol.dialects import CLASSES, DIALECTS
from a2a_tasks.protocol.versions import SUPPORTED

#: Forms of cards for readers of several dialects.
MIXED = {"hybrid", "legacy"}
#: Dialects with gRPC, an interface in the card of 1.0, a card by default.
OPTIONAL: dict[str, Collection[str]] = {
    "FORMS in a2a_grpc/binding/messages.py": messages.FORMS,
    "INTERFACES in a2a_tasks/agents/cards.py": {code for code, *_ in cards.INTERFACES},
    "DEFAULTS in a2a_tasks/bindings/card_endpoint.py": card_endpoint.DEFAULTS.values(),
}


@pytest.mark.parametrize("table", OPTIONAL)
def test_an_optional_table_has_rows_of_dialects_alone(table: str) -> None:
    assert set(OPTIONAL[table]) - MIXED <= DIALECTS.keys()


def test_each_version_is_supported_and_the_newest_comes_first() -> None:
    assert SUPPORTED == ("1.0", "0.3", "0.2", "0.1", "0.0")


def test_each_dialect_has_a_mount_of_its_own() -> None:
    assert len({dialect.path for dialect in CLASSES}) == len(CLASSES)


def test_each_form_of_a_card_has_required_members() -> None:
    assert FORMS.keys() == card_flaws.REQUIRED.keys()
