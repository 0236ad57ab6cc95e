"""A PgBouncer of the tests' own, in transaction mode, where this machine has one (`apt-get install pgbouncer`)."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import socket

from lab.faultlab.private import PrivateServer, eventually

__all__ = ["PgBouncer", "path"]

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = trust
auth_file = {directory}/users
pool_mode = transaction
server_login_retry = 1
default_pool_size = {size}
ignore_startup_parameters = extra_float_digits
"""


@functools.cache
def path() -> str | None:
    """The program, if there is one."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class PgBouncer(PrivateServer):
    """A pool of a few connections to a server on a port of this machine."""

    def __init__(self, server: int, *, size: int = 8) -> None:
        """Write its settings. Nothing runs yet."""
        super().__init__("pgbouncer")
        said = SETTINGS.format(server=server, port=self.port, directory=self.directory, size=size)
        (self.directory / "settings").write_text(said)
        (self.directory / "users").write_text('"host" ""\n')
        self.directory.chmod(0o755)

    def start(self) -> None:
        """Start it; returns when it lets clients in."""
        user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None  # it refuses root
        self.spawn([path() or "pgbouncer", str(self.directory / "settings")], user)
        eventually(self._listens, 10, "pgbouncer does not listen")

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex((self.host, self.port)) == 0
