"""A standby of a private PostgreSQL: a copy that follows it, and may be promoted."""

from __future__ import annotations

import os
import subprocess

from lab.faultlab.postgres import Postgres, binaries, server_user
from lab.faultlab.private import NotReady, eventually

__all__ = ["PRIMARY", "Standby"]

#: What the primary is told besides.
PRIMARY = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}


class Standby(Postgres):
    """Follows `primary`, which was made with the settings PRIMARY, under the name `standby`."""

    def __init__(self, primary: Postgres) -> None:
        self._primary = primary
        super().__init__(PRIMARY)

    def _initialise(self) -> None:
        if (user := server_user()) is not None:
            os.chown(self.directory, user, -1)
        command = [
            "-h",
            str(self._primary.directory),
            "-p",
            str(self._primary.port),
            "-U",
            "postgres",
        ]
        command += ["-D", str(self.data), "-R", "--checkpoint=fast", "--no-sync"]
        made = subprocess.run(  # noqa: S603 - the system's
            [str(binaries() / "pg_basebackup"), *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.directory,
            user=user,
        )
        if made.returncode:
            raise NotReady(f"pg_basebackup: {made.stderr}")

    def _create_role(self) -> None:
        """It has the roles of its primary."""

    def promote(self) -> None:
        """Let it write; returns when it does."""
        self.execute("select pg_promote()")
        eventually(
            lambda: self.execute("select pg_is_in_recovery()") == [(False,)],
            30,
            "it is not promoted",
        )
