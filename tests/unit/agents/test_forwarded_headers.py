"""Headers for agents: those that the agent names, by any spelling, within their bound."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from a2a_tasks.agents import Agent
from a2a_tasks.agents.forwarded_headers import pick
from a2a_tasks.protocol.errors import InvalidParams

HEADERS = {"x-user-id": "7", "x-team": "red", "authorization": "Bearer x"}


class Reader(Agent, abstract=True):
    """Reads two headers."""

    forwarded_headers = ("X-User-Id", "x-user-id", "x-absent")


class TestPick:
    def test_the_agent_gets_what_it_names(self) -> None:
        assert pick(Reader(), HEADERS) == {"x-user-id": "7"}

    def test_an_agent_that_names_none_gets_none(self) -> None:
        assert pick(Agent(), HEADERS) == {}

    def test_as_many_bytes_as_are_allowed_are_taken(self, settings: Settings) -> None:
        settings.A2A_FORWARDED_HEADER_BYTES = 13
        assert pick(Reader(), {"x-user-id": "éé"}) == {"x-user-id": "éé"}

    def test_one_byte_more_is_refused_and_headers_of_others_do_not_count(
        self, settings: Settings
    ) -> None:
        settings.A2A_FORWARDED_HEADER_BYTES = 13
        with pytest.raises(InvalidParams, match="have 14 bytes, more than 13: x-user-id"):
            pick(Reader(), {"x-user-id": "éée", "x-team": "r" * 100})
