"""The commands of deploy/Procfile, as tests run them."""

from __future__ import annotations

import re
import shlex

from tests import ROOT

__all__ = ["command_of", "worker_arguments"]


def command_of(process: str) -> list[str]:
    """The words of a process's command."""
    lines = (ROOT / "deploy" / "Procfile").read_text(encoding="utf-8").splitlines()
    (command,) = [line for line in lines if line.startswith(f"{process}: ")]
    return shlex.split(command)[2:]  # after `worker: exec`


def worker_arguments(process: str, name: str) -> list[str]:
    """The arguments of Python that run a Celery worker of the Procfile under this name, without a file of its id."""
    command = shlex.join(command_of(process))
    command = re.sub(r" --pidfile \S+", "", command)
    _, *options = shlex.split(re.sub(r"(?<= -n )\S+", f"{name}@%h", command))
    return ["-m", "celery", *options]
