"""Waits of agents, where there is no host: what their tests see of them."""

from __future__ import annotations

import datetime

import pytest

from a2a_tasks.agents import Agent, Skill, Turn
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.testing import converse
from tests.support.examples.turns import make_turn


class Waits(Agent, abstract=True):
    name, description = "Waits", "Waits."
    skills = [Skill("wait", "Wait", "Waits", tags=["test"])]

    async def run(self, turn: Turn) -> str:
        await turn.sleep(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
        return (await turn.wait_for("another")).word


async def test_take_no_time_and_every_task_has_completed() -> None:
    (answer,) = await converse(Waits, "go")
    assert (answer.state, answer.text) == (TaskState.COMPLETED, "completed")


async def test_a_moment_without_a_time_zone_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="time zone"):
        make_turn("x").sleep(datetime.datetime(2100, 1, 1))  # noqa: DTZ001


async def test_a_task_cannot_wait_for_itself() -> None:
    turn = make_turn("x")
    with pytest.raises(ValueError, match="itself"):
        turn.wait_for(turn.task_id)
