"""Commands in a root directory and a network of their own: what an engine does for containers, by programs of util-linux."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shlex
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

__all__ = ["Network", "Root", "Space", "missing", "relay", "run_in"]

T = TypeVar("T")
PROGRAMS = ("unshare", "nsenter", "setpriv", "ip", "mount", "chroot")
#: What a machine may have, and the image has not.
COMPILERS = (
    "cc",
    "c++",
    "gcc*",
    "g++*",
    "c89*",
    "c99*",
    "*-gnu-gcc*",
    "*-gnu-g++*",
    "clang*",
    "make",
)
DEVICES = ("null", "zero", "full", "random", "urandom")


@functools.cache
def missing() -> str:
    """Why this machine cannot do it; empty = it can."""
    if os.geteuid():
        return "namespaces need root"
    if lacking := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"no {', '.join(lacking)}"
    tried = subprocess.run(
        ["unshare", "--mount", "--net", "--uts", "mount", "-t", "tmpfs", "none", "/tmp"],
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip()


@dataclass(frozen=True)
class Root:
    """A directory that becomes `/`. The machine's `/usr` is in it, to read, but for its compilers and `/usr/local`."""

    path: Path

    def make(self) -> None:
        """Make an empty system: directories, users, certificates, and no home of anybody."""
        for name in ("usr", "local", "proc", "dev/shm", "tmp", "root", "srv", "opt", "etc"):
            (self.path / name).mkdir(parents=True)
        self.path.chmod(0o755)
        for name in ("bin", "sbin", "lib", "lib32", "lib64"):
            if (place := Path("/", name)).is_symlink():
                (self.path / name).symlink_to(place.readlink())
            elif place.is_dir():
                (self.path / name).mkdir()
        for name, target in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
            (self.path / "dev" / name).symlink_to(f"/proc/self/fd{target}")
        for name in (
            "ld.so.conf",
            "ld.so.conf.d",
            "login.defs",
            "nsswitch.conf",
            "resolv.conf",
            "ssl",
        ):
            place = Path("/etc", name)
            if place.is_dir():
                shutil.copytree(place, self.path / "etc" / name, symlinks=True)
            elif place.exists():
                shutil.copy(place, self.path / "etc" / name)
        etc = self.path / "etc"
        (etc / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (etc / "group").write_text("root:x:0:\n")
        (etc / "shadow").write_text("root:*:19000:0:99999:7:::\n")
        (etc / "hosts").write_text("127.0.0.1 localhost\n")

    def group_of(self, user: str) -> int:
        """The first group of a user, by number or name."""
        lines = (self.path / "etc" / "passwd").read_text().splitlines()
        users = [line.split(":") for line in lines]
        return next((int(each[3]) for each in users if user in (each[0], each[2])), 0)


@dataclass(frozen=True)
class Space:
    """Where and as whom a command runs."""

    root: Root
    environ: Mapping[str, str]
    directory: str = "/"
    user: str = "0"
    hostname: str = "container"
    #: A process whose network it uses; None = the machine's.
    network: int | None = None
    #: May only /tmp and the volumes be written to? It then also has no capabilities.
    confined: bool = False
    #: Paths of the machine, by their place inside.
    volumes: Mapping[str, Path] = field(default_factory=dict)

    def enter(self, command: Sequence[str]) -> list[str]:
        """The command that starts this one in here."""
        root = shlex.quote(str(self.root.path))
        setup = [
            f"hostname {shlex.quote(self.hostname)}",
            f"mount --bind {root} {root}",
            *(
                f"mount --bind /{name} {root}/{name}"
                for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64")
                if (path := self.root.path / name).is_dir() and not path.is_symlink()
            ),
            f"mount -o remount,bind,ro {root}/usr",
            *(
                f"mount --bind /dev/null {shlex.quote(f'{self.root.path}{place}')}"
                for pattern in COMPILERS
                for place in Path("/usr/bin").glob(pattern)
                if not place.is_symlink()
            ),
            f"mount --bind {root}/local {root}/usr/local",
            f"mount -t proc proc {root}/proc",
            f"mount -t tmpfs -o mode=1777,nosuid,nodev,noexec none {root}/tmp",
        ]
        for name in DEVICES:
            place = self.root.path / "dev" / name
            place.touch()
            setup.append(f"mount --bind /dev/{name} {shlex.quote(str(place))}")
        setup.append(f"mount -t tmpfs -o mode=1777,size=64m none {root}/dev/shm")
        for inside, volume in self.volumes.items():
            place = self.root.path / inside.lstrip("/")
            if volume.is_file() and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()
            setup.append(f"mount --bind {shlex.quote(str(volume))} {shlex.quote(str(place))}")
        if self.confined:
            setup += [
                f"mount -o remount,bind,ro {root}/usr/local",
                f"mount -o remount,bind,ro {root}",
            ]
        as_user = ["chroot", str(self.root.path), *self._become(), *command]
        script = "\n".join(["set -e", *setup, f"exec {shlex.join(as_user)}"])
        network = [] if self.network is None else ["nsenter", f"--net=/proc/{self.network}/ns/net"]
        own = ["unshare", "--mount", "--uts", "--propagation", "private"]
        return [*network, *own, "/bin/sh", "-c", script]

    def run(self, command: Sequence[str]) -> str:
        """Run a command in here, with nothing of the environment of this process; returns what it said.

        Raises AssertionError if it fails.
        """
        done = subprocess.run(
            self.enter(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}"
        return done.stdout

    def join(self, process: int, command: Sequence[str]) -> list[str]:
        """The command that starts this one beside a process that was started in here."""
        beside = ["nsenter", f"--target={process}", "--mount", "--net", "--uts", "--root"]
        return [*beside, *self._become(), *command]

    def _become(self) -> list[str]:
        user, _, group = self.user.partition(":")
        ids = [
            f"--reuid={user}",
            f"--regid={group or self.root.group_of(user)}",
            "--clear-groups",
            "--pdeathsig=TERM",
        ]
        none = ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"] if self.confined else []
        environ = [f"{name}={value}" for name, value in self.environ.items()]
        words = ["/usr/bin/setpriv", *ids, *none, "/usr/bin/env", "-i", f"--chdir={self.directory}"]
        return [*words, *environ, f"HOSTNAME={self.hostname}"]


class Network:
    """A network that nothing but its processes reaches; a context manager. `pid` is a process that holds it."""

    def __init__(self) -> None:
        self.pid = 0
        self._holders: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        """Make it, with nothing in it but a bridge."""
        self.pid = self._hold()
        self._ip(self.pid, "link add name bridge type bridge")
        self._ip(self.pid, "link set bridge up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing stays."""
        for holder in self._holders:
            holder.communicate()

    def add_address(self, address: str) -> None:
        """Give the bridge another address."""
        self._ip(self.pid, f"address add {address}/24 dev bridge")

    def join(self, address: str) -> int:
        """Make a network card with this address, in a network of its own beside the bridge; returns who holds it."""
        pid = self._hold()
        port = f"port{len(self._holders)}"
        self._ip(self.pid, f"link add name {port} type veth peer name eth0 netns {pid}")
        self._ip(self.pid, f"link set {port} master bridge up")
        self._ip(pid, f"address add {address}/24 dev eth0")
        self._ip(pid, "link set eth0 up")
        return pid

    def _hold(self) -> int:
        """Start a process in a new network, which ends with this one."""
        command = ["unshare", "--net", "/bin/sh", "-c", "ip link set lo up && echo up && exec cat"]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._holders.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n"
        return holder.pid

    def _ip(self, pid: int, words: str) -> None:
        command = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words.split()]
        subprocess.run(command, check=True)


def run_in(network: int, work: Callable[[], T]) -> T:
    """Call this in a thread of the network that the process has. A socket stays in the network where it was made."""

    def enter() -> T:
        library = ctypes.CDLL(None, use_errno=True)
        with Path(f"/proc/{network}/ns/net").open() as file:
            if library.setns(file.fileno(), 0):
                raise OSError(ctypes.get_errno(), "setns")
        return work()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(enter).result()


def relay(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    """Pass whoever connects on, in threads, until the listener is closed."""

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def serve(client: socket.socket) -> None:
        with client, connect() as server:
            back = threading.Thread(target=pump, args=(server, client), daemon=True)
            back.start()
            pump(client, server)
            back.join()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
