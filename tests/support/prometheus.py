"""The shipped configuration of Prometheus, and the programs that read it, where this machine has them."""

from __future__ import annotations

import functools
import shutil

from tests import ROOT

__all__ = ["CONFIGURATION", "RULES", "path"]

CONFIGURATION = ROOT / "deploy" / "prometheus" / "prometheus.yaml"
RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"


@functools.cache
def path() -> str | None:
    """The program, if there is one and its tool is there, too."""
    return shutil.which("prometheus") if shutil.which("promtool") else None
