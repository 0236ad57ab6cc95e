"""Both halves of `make test` at the same time: `python -m tests.halves COMMAND OTHER_COMMAND`, each a line of a shell.

One half often waits for what the other lets a processor do, and each needs half as many processes, each of which costs
seconds before its first test. The first command is shown as it runs, the other one when both have ended.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile

__all__ = ["run"]


def run(shown: str, kept: str) -> int:
    """Return the larger exit status. A keyboard interrupt reaches both, which end by themselves."""
    environ = {**os.environ, "TEST_HALVES": "1"}
    with tempfile.TemporaryFile() as said:
        other = subprocess.Popen(  # noqa: S603 - our own command lines
            shlex.split(kept), env=environ, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        one = subprocess.Popen(shlex.split(shown), env=environ)  # noqa: S603 - the same
        codes: list[int] = []
        while not codes:
            try:
                codes = [process.wait() for process in (one, other)]
            except KeyboardInterrupt:
                continue
        said.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(said.read())
    return max(codes, key=abs)


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
