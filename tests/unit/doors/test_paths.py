"""Which door serves a path."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_project.doors import find_door

PLACES = [
    ("/mcp", "mcp"),
    ("/agents/echo/mcp", "mcp"),
    ("/.well-known/oauth-protected-resource", "mcp"),
    ("/.well-known/oauth-protected-resource/agents/echo/mcp", "mcp"),
    ("/v1/models", "openai"),
    ("/v1/models/echo", "openai"),
    ("/v1/chat/completions", "openai"),
    ("/agents/echo/ag-ui", "ag-ui"),
    ("/agents/echo/", ""),
    ("/agents/echo/mcp/tasks", ""),
    ("/v1/message:send", ""),
    ("/mcp/other", ""),
]


@pytest.mark.parametrize(("path", "door"), PLACES)
def test_a_path_belongs_to_one_door_at_most(settings: Any, path: str, door: str) -> None:
    settings.A2A_DOORS = "mcp, openai, ag-ui"
    assert find_door(path) == door


@pytest.mark.parametrize("path", [path for path, _ in PLACES])
def test_a_door_that_is_not_named_serves_nothing(settings: Any, path: str) -> None:
    settings.A2A_DOORS = "catalog"
    assert find_door(path) == ""
