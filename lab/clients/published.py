"""A published client, run as a program in an environment of its own, and what it tells of a host."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.clients.programs.environments import HERE, node_modules, python_of

__all__ = ["Client", "Say", "Told", "bare"]

Say = Callable[[str], None]
#: What went wrong, by binding and check: nothing where nothing did.
Told = dict[tuple[str, str], str]


@dataclass(frozen=True)
class Client:
    """A published client: its script, the version of the protocol it is to speak, and how to run it."""

    script: str
    version: str
    bindings: tuple[str, ...] = ("JSONRPC", "HTTP+JSON")
    #: The list of what its environment has, if the script does not tell.
    pins: str = ""

    @property
    def javascript(self) -> bool:
        """Does it need node?"""
        return self.script.endswith(".mjs")

    def command(self, say: Say) -> list[str]:
        """What to run. Raises Unavailable."""
        script = HERE / self.script
        if self.javascript:
            return ["node", str(script)]
        pins = HERE / self.pins if self.pins else script.with_suffix(".txt")
        return [str(python_of(pins, say)), str(script)]

    def folder(self, say: Say) -> Path:
        """The folder to run it in. Raises Unavailable."""
        return node_modules((HERE / self.script).with_suffix(""), say) if self.javascript else HERE

    def converse(
        self,
        say: Say,
        checks: Sequence[str],
        *places: str,
        environ: Mapping[str, str] | None = None,
    ) -> Told:
        """What went wrong: `places` are the URLs of card and endpoint, and where to talk instead. Raises Unavailable."""
        card, *others = places
        asked = {"CHECKS": ",".join(checks), "BINDINGS": ",".join(self.bindings)}
        done = subprocess.run(  # noqa: S603 - our own scripts; each of their checks has an end
            [*self.command(say), card, self.version, *others],
            cwd=self.folder(say),
            env={**bare(os.environ), **asked, **(environ or {})},
            capture_output=True,
            text=True,
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        undelivered = f"nothing was told of this; exit code {done.returncode}\n{done.stderr}"
        cases = [(binding, check) for binding in self.bindings for check in checks]
        return dict.fromkeys(cases, undelivered) | {
            (one["binding"], one["check"]): one["why"] for one in told
        }


def bare(environ: Mapping[str, str]) -> dict[str, str]:
    """Without what would let modules of the tests in, or lead requests astray."""
    left_out = ("PYTHON", "NODE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {name: value for name, value in environ.items() if not name.upper().startswith(left_out)}
