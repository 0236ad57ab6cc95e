"""The compose file, read as Docker reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests import ROOT

__all__ = ["VARIABLE", "ours", "services"]

#: `${NAME}`, `${NAME:-default}`, `${NAME:?complaint}`, and `$$`, which is a `$`.
VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\})")


def services(variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the services, with these variables. Raises KeyError for one that must be set and is not."""

    def fill(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "$"
        if value := variables.get(found["name"]):
            return value
        if found["kind"] == "?":
            raise KeyError(found["rest"])
        return found["rest"] or ""

    def walk(value: Any) -> Any:
        match value:
            case str():
                return VARIABLE.sub(fill, value)
            case dict():
                return {key: walk(each) for key, each in value.items()}
            case list():
                return [walk(each) for each in value]
        return value

    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = walk(yaml.safe_load(text)["services"])
    return found


def ours(services: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Those of our own image."""
    return {name: each for name, each in services.items() if "build" in each}
