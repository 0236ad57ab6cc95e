"""What the methods of a turn make of their arguments."""

from __future__ import annotations

import pytest

from tests.support.examples.turns import make_turn


@pytest.mark.parametrize(
    "method", ["working", "ask", "need_auth", "complete", "fail", "reject", "reply", "artifact"]
)
async def test_everything_that_is_said_takes_metadata(method: str) -> None:
    said = getattr(make_turn("x"), method)("x", metadata={"n": 3})
    assert said.metadata == {"n": 3}
