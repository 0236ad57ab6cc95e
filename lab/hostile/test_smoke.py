"""The smoke of the hostile requests: two hundred over JSON-RPC, HTTP+JSON and gRPC, whose numbers no other test here has."""

from __future__ import annotations

from typing import Any

import pytest

from lab.hostile import test_hostile, test_hostile_calls
from lab.hostile.test_hostile_calls import Ask, asking
from tests.support.bindings.client import Client

__all__ = ["asking"]
pytestmark = pytest.mark.usefixtures("host")
FIRST = 2000


async def test_hostile_requests_do_no_harm(
    client: Client, settings: Any, record_property: Any
) -> None:
    done = await test_hostile.no_harm(range(FIRST, FIRST + 130), client, settings)
    record_property("hostile", done)


async def test_hostile_calls_do_no_harm(
    asking: Ask, client: Client, settings: Any, record_property: Any
) -> None:
    done = await test_hostile_calls.no_harm(range(FIRST, FIRST + 70), asking, client, settings)
    record_property("hostile", done)
