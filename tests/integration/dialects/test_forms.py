"""A question with a form, and its answers, in every dialect: what does not fit is refused with its field."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.agents import Turn
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.dialects.clients import WIRES, Piece, Refused, Wire

pytestmark = pytest.mark.django_db
FORM = {"type": "object", "properties": {"people": {"type": "integer"}}, "required": ["people"]}


async def ask(turn: Turn) -> Any:
    """Ask until there is an answer."""
    answer = await turn.answer
    return turn.ask("How many?", form=FORM) if answer is None else f"{answer['people']} come"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_an_answer_that_does_not_fit_is_refused_and_one_that_fits_goes_on(
    wire: Wire, host: None, client: Client
) -> None:
    modes = ["text/plain", "application/json"]
    with playing(ask, default_input_modes=modes) as agent:
        made = wire.of(client, agent.slug)
        params = made._params(["hello"], "mine" if wire.grammar.names_tasks else "", "")
        asked = await made.call("send", params)
        task = asked.get("task", asked)["id"]
        assert str(FORM) in str(asked)
        with pytest.raises(Refused) as refused:
            await made.call("send", made._params([Piece("data", {"people": "two"})], task, ""))
        assert "data.people" in str(refused.value)
        done = await made.call("send", made._params([Piece("data", {"people": 2})], task, ""))
    assert "2 come" in str(done)
