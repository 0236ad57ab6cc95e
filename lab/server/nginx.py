"""An nginx with the configuration of `deploy/nginx`, where this machine has one (`apt-get install nginx`)."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import ssl

from lab.faultlab.private import PrivateServer
from tests import ROOT
from tests.support.bindings.authority import Authority
from tests.support.ports import free_port

__all__ = ["CONFIGURATION", "NAME", "Nginx", "path"]

CONFIGURATION = ROOT / "deploy" / "nginx" / "a2a.conf"
NAME = "localhost"
#: What Debian has around such a file, with directories of our own.
AROUND = """
{user}
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log stderr;
events {{ worker_connections 1024; }}
http {{
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/a2a.conf;
}}
"""


@functools.cache
def path() -> str | None:
    """The program, if there is one."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Nginx(PrivateServer):
    """The shipped file before these ports; only names, addresses and paths in it are changed. `port` is that of TLS."""

    def __init__(self, web: int, grpc: int, port: int = 0) -> None:
        """Write its configuration and a certificate; without a port, on a free one. Nothing runs yet."""
        super().__init__("nginx")
        self.port = port or self.port
        self.plain_port = free_port()
        authority = Authority(self.directory)
        chain, key = authority.issue("server")
        self.authority = authority.path
        changed = {
            "server 127.0.0.1:8000;": f"server 127.0.0.1:{web};",
            "server 127.0.0.1:50051;": f"server 127.0.0.1:{grpc};",
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen [::]:80;": f"listen [::1]:{self.plain_port};",
            "listen 443 ": f"listen 127.0.0.1:{self.port} ",
            "listen [::]:443 ": f"listen [::1]:{self.port} ",
            "agents.example.com": NAME,
            "/etc/ssl/a2a/fullchain.pem": str(chain),
            "/etc/ssl/a2a/privkey.pem": str(key),
            "/var/log/nginx/a2a.log": str(self.directory / "access.log"),
        }
        text = CONFIGURATION.read_text(encoding="utf-8")
        for shipped, ours in changed.items():
            assert shipped in text, f"{CONFIGURATION} has no {shipped!r} any more"
            text = text.replace(shipped, ours)
        (self.directory / "a2a.conf").write_text(text)
        user = "user root;" if os.geteuid() == 0 else ""  # the directory is ours alone
        around = AROUND.format(user=user, directory=self.directory)
        (self.directory / "nginx.conf").write_text(around)

    def start(self) -> None:
        """Start it; returns when it lets clients in."""
        command = [path() or "nginx", "-e", "stderr", "-c", str(self.directory / "nginx.conf")]
        self.spawn(command)
        self.await_answer(self._listens)

    def stop(self) -> None:
        """End it, and its worker with it."""
        self.signal(signal.SIGTERM)
        self.wait()

    def close(self) -> None:
        """End it: a master that is killed would leave its worker behind."""
        self.stop()
        super().close()

    def trusting(self) -> ssl.SSLContext:
        """What a client needs for its certificate."""
        return ssl.create_default_context(cafile=str(self.authority))

    def requests(self) -> list[str]:
        """The lines of its access log."""
        return (self.directory / "access.log").read_text().splitlines()

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex((self.host, self.port)) == 0
