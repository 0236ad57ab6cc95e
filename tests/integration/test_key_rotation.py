"""Rotating `SECRET_KEY` as an operator does, by the environment: a host with everything that hangs on it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

pytestmark = pytest.mark.timeout(180)

DRILL = """
import django
django.setup()
from tests.support import rotation_drill
rotation_drill.main()
"""
OLD, NEW = "old" * 20, "new" * 20
HAS_EXTRA = importlib.util.find_spec("allauth") is not None
#: What is in rows, and can be sealed anew.
SEALED = {"webhook", "handed", *(["factors"] if HAS_EXTRA else [])}
#: What was made or signed with the key, and is out of the host's hands.
GIVEN = {"url", "seals", "card", "receiver"}


class Host:
    """The host of the drill."""

    def __init__(self, directory: Path) -> None:
        """Its database is in this directory."""
        self._environ = {
            "PATH": os.environ["PATH"],
            "VAR_DIR": str(directory),
            "DJANGO_SETTINGS_MODULE": "a2a_project.settings",
            "A2A_PUBLIC_URL": "https://agents.example.com",
            **({"A2A_ADMIN_MFA": "required"} if HAS_EXTRA else {}),
        }

    def run(self, *words: str, key: str, fallbacks: str = "", said: str = "") -> str:
        """Run a process of it with this key, and these from before."""
        done = subprocess.run(  # noqa: S603 - words of the test
            [sys.executable, *words],
            cwd=ROOT,
            env={**self._environ, "SECRET_KEY": key, "SECRET_KEY_FALLBACKS": fallbacks},
            input=said,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def drill(self, *words: str, **how: str) -> Any:
        """What the drill says."""
        return json.loads(self.run("-c", DRILL, *words, **how))


def working(told: Any) -> set[str]:
    """The names of what works."""
    return {name for name, works in told["works"].items() if works}


def test_a_rotated_key_opens_everything_as_a_fallback_and_nothing_once_it_is_gone(
    tmp_path: Path,
) -> None:
    host = Host(tmp_path)
    made = json.dumps(host.drill("make", key=OLD))
    rotated = host.drill("look", key=NEW, fallbacks=f"other, {OLD}", said=made)
    assert working(rotated) == SEALED | GIVEN
    assert rotated["said"] == []
    forgotten = host.drill("look", key=NEW, said=made)
    assert working(forgotten) == set()
    assert {text.partition(" can be ")[0] for text in forgotten["said"]} == {
        "1 secrets of webhooks",
        "1 secrets that were handed over",
        *({"2 second factors"} if HAS_EXTRA else ()),
    }
    host.run("manage.py", "reseal", key=NEW, fallbacks=OLD)
    resealed = host.drill("look", key=NEW, said=made)
    assert working(resealed) == SEALED
    assert resealed["said"] == []
