"""The smoke of the matrix: a few wires, on which every operation is asked for by everybody once."""

from __future__ import annotations

from typing import Any

import pytest
from allpairspy import AllPairs

from lab.matrix.asks import OPERATIONS, REPRESENTATIVE, TARGETS, wires
from lab.matrix.test_matrix import WHO, Case, nobody_can_tell
from tests.support.access.issuer import Issuer
from tests.support.bindings.client import Client

pytestmark = pytest.mark.usefixtures("host", "agents")
CHOSEN = [wire for wire in wires() if wire.name in REPRESENTATIVE]
THERE = {(wire.name, operation) for wire, operation in TARGETS}
#: Wire, operation and who asks: every pair of these meets.
CELLS = [
    tuple(cell)
    for cell in AllPairs(
        [[wire.name for wire in CHOSEN], list(OPERATIONS), WHO],
        filter_func=lambda cell: len(cell) < 2 or tuple(cell[:2]) in THERE,
    )
]


@pytest.mark.parametrize("wire", CHOSEN, ids=lambda wire: wire.name)
async def test_nobody_can_tell_what_is_another_s_from_what_is_not_there(
    wire: Any, client: Client, issuer: Issuer, settings: Any, record_property: Any
) -> None:
    def asked(who: str) -> list[str]:
        chosen = [operation for name, operation, one in CELLS if (name, one) == (wire.name, who)]
        return chosen if set(chosen) - {"GetAgentCard"} else [*chosen, "GetTask"]

    case = Case(wire, client, issuer, asked)
    await nobody_can_tell(case, settings)
    record_property("cells", case.cells)
