"""The services of the compose file, each in a root and network of its own, under the names that they have there."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lab.containers.image import Image
from lab.containers.names import serve_names
from lab.containers.namespaces import Network, Root, Space, relay, run_in
from lab.faultlab.postgres import Postgres
from lab.faultlab.redis_server import RedisServer
from tests import ROOT
from tests.support.compose import ours, services

__all__ = ["Container", "Stack", "stack"]

#: Of Docker's own range, which TRUSTED_PROXIES has.
ADDRESS = "172.30.0.{}"
#: What a person must set, and what a trial without TLS and callers' keys needs.
SET = {
    "SECRET_KEY": secrets.token_hex(32),
    "POSTGRES_PASSWORD": secrets.token_hex(16),
    "SECURE_COOKIES": "0",
}
#: Seconds until a service is well, or no longer well, on a busy machine.
PATIENCE = 120.0
#: nginx comes from another image, so this one is of the machine.
NGINX_PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Container:
    """A process of a service."""

    service: dict[str, Any]
    space: Space
    process: subprocess.Popen[bytes]
    log: Path

    def run(self, command: Sequence[str], seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command beside the process."""
        return subprocess.run(
            self.space.join(self.process.pid, command),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )

    def is_healthy(self) -> bool:
        """Run the command of its healthcheck, as the engine does. Raises AssertionError with its log if it has ended."""
        assert self.process.poll() is None, self.log.read_text()[-4000:]
        seconds = float(self.service["healthcheck"].get("timeout", "5s").removesuffix("s"))
        kind, *words = self.service["healthcheck"]["test"]
        command = ["/bin/sh", "-c", *words] if kind == "CMD-SHELL" else words
        try:
            return self.run(command, seconds).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def await_health(self, *, well: bool = True) -> None:
        """Wait until its healthcheck says that it is well, or that it is not. Raises AssertionError with its log."""
        deadline = time.monotonic() + PATIENCE
        while self.is_healthy() is not well:
            assert time.monotonic() < deadline, f"well: {not well}\n{self.log.read_text()[-4000:]}"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)

    def end(self) -> int:
        """End it by its signal; returns its code, or that of the kill that it needed."""
        stop = str(self.service.get("stop_signal", "SIGTERM"))
        self.process.send_signal(signal.Signals[stop])
        grace = int(self.service["stop_grace_period"].removesuffix("s"))
        try:
            return self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Stack:
    """Everything of the compose file that runs; `url` and `grpc` are the published ports."""

    def __init__(self, image: Image, folder: Path, exits: ExitStack) -> None:
        self.services = services(SET)
        own = {
            "command": image.command,
            "scale": 1,
            "healthcheck": {"test": ["CMD", *image.healthcheck]},
        }
        self.services["image"] = {**self.services["web"], **own}
        self._image, self._folder, self._exits = image, folder, exits
        self._network = exits.enter_context(Network())
        self.containers: dict[str, Container] = {}
        self.url = self.grpc = ""
        #: Addresses by name; a service that is scaled has several.
        self.addresses: dict[str, list[str]] = {}
        number = 10
        for name, service in self.services.items():
            count = service.get("scale", 1)
            self.addresses[name] = [ADDRESS.format(number + n) for n in range(count)]
            number += count
        lines = [f"{each} {name}\n" for name, all_ in self.addresses.items() for each in all_]
        with (image.root.path / "etc" / "hosts").open("a") as file:
            file.writelines(lines)
        self._files = folder / "files"
        self._files.mkdir(mode=0o700)
        os.chown(self._files, int(image.user), -1)

    def serve_databases(self) -> None:
        """Start PostgreSQL and Redis of this machine under their names."""
        self._network.add_address(ADDRESS.format(1))
        postgres = self._exits.enter_context(Postgres())
        postgres.execute("CREATE ROLE a2a LOGIN")
        postgres.execute("CREATE DATABASE a2a OWNER a2a")
        redis = self._exits.enter_context(RedisServer())
        for name, port, server in (("postgres", 5432, postgres), ("redis", 6379, redis)):
            (address,) = self.addresses[name]
            self._network.add_address(address)
            listener = run_in(self._network.pid, partial(socket.create_server, (address, port)))
            self._listen(listener, partial(socket.create_connection, ("127.0.0.1", server.port)))

    def _listen(self, listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
        """Pass on what comes to this socket, until the end."""
        self._exits.callback(listener.close)
        self._exits.callback(listener.shutdown, socket.SHUT_RDWR)
        relay(listener, connect)

    def run(self, name: str) -> int:
        """Run a service that ends, and return its code."""
        return self.start(name).process.wait()

    def start(self, name: str, number: int = 0) -> Container:
        """Start a process of a service."""
        service = self.services[name]
        network = self._network.join(self.addresses[name][number])
        label = f"{name}-{number + 1}"
        environ = {"PATH": NGINX_PATH}
        root, directory = self._image.root, self._image.directory
        user, volumes = self._image.user, {"/srv/files": self._files}
        if name in ours(self.services):
            environ = {**self._image.environ, **service["environment"]}
        else:
            root, directory, user = Root(self._folder / label), "/", service["user"]
            root.make()
            pairs = [each.split(":") for each in service["volumes"]]
            volumes = {inside: ROOT / outside for outside, inside, _ in pairs}
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        space = Space(root, environ, directory, user, label, network, True, volumes)
        log = self._folder / f"{label}.log"
        command = [*service.get("entrypoint", []), *service.get("command", [])]
        log.touch(0o666)  # nginx opens /dev/stdout
        log.chmod(0o666)
        with log.open("ab") as file:
            process = subprocess.Popen(
                space.enter(command), stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        self._exits.callback(process.wait)
        self._exits.callback(process.kill)
        if name == "nginx":
            self._exits.callback(serve_names(network, self.addresses).close)
        self.containers[label] = container = Container(service, space, process, log)
        return container

    def publish(self) -> None:
        """Make the ports of nginx reachable from this machine."""
        (address,) = self.addresses["nginx"]
        found = []
        for each in self.services["nginx"]["ports"]:
            *_, port = each.split(":")
            listener = socket.create_server(("127.0.0.1", 0))
            reach = partial(socket.create_connection, (address, int(port)))
            self._listen(listener, partial(run_in, self._network.pid, reach))
            found.append(f"127.0.0.1:{listener.getsockname()[1]}")
        self.url, self.grpc = f"http://{found[0]}", found[1]

    def logs(self) -> str:
        """The end of every log."""
        return "\n".join(
            f"--- {each.log.stem}\n{each.log.read_text(errors='replace')[-3000:]}"
            for each in self.containers.values()
        )


@contextlib.contextmanager
def stack(image: Image) -> Iterator[Stack]:
    """The services of the compose file, none of them started but the databases."""
    with tempfile.TemporaryDirectory(prefix="a2a-containers-") as folder, ExitStack() as exits:
        made = Stack(image, Path(folder), exits)
        made.serve_databases()
        yield made
