"""Clients of MCP look for a sign-in at the addresses of OAuth, some five times before a call."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_project.asgi import application
from tests.support.bindings.client import Client


@pytest.mark.parametrize("below", ["", "/mcp"])
@pytest.mark.parametrize("name", ["oauth-authorization-server", "openid-configuration"])
async def test_addresses_that_the_host_does_not_have_are_404_without_the_database(
    settings: Any, name: str, below: str
) -> None:
    settings.A2A_DOORS = "mcp"
    answer = await Client(application).get(f"/.well-known/{name}{below}")
    assert answer.status == 404
