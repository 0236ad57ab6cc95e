"""What is done to a lab's servers, network and processes, and how it is taken back.

An act is called in a thread with the scene of a run; what takes it back goes on the scene's stack.
"""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg

from lab.faultlab.client import SHAPES, Client
from lab.faultlab.lab import Lab
from lab.faultlab.postgres import server_user
from lab.faultlab.private import eventually
from lab.faultlab.processes import Process
from lab.faultlab.promises import Seen
from lab.faultlab.redis_server import RedisServer
from lab.outages.standby import Standby
from tests.support.proxy import Behaviour, Proxy

__all__ = ["Act", "Scene", "mend"]


@dataclass(kw_only=True)
class Scene:
    """A lab, and what a fault has to remember until it is mended."""

    lab: Lab
    rng: random.Random
    client: Client
    seen: Seen
    #: What mends the fault, and what is put away when all is over.
    undo: ExitStack = field(default_factory=ExitStack)
    closing: ExitStack = field(default_factory=ExitStack)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    #: A worker with a proxy of its own before the database.
    aside: Process | None = None
    proxy: Proxy | None = None
    standby: Standby | None = None


Act = Callable[[Scene], object]
Load = Callable[[Scene], Awaitable[None]]


def mend(scene: Scene) -> None:
    """Take back what was done, the last first."""
    scene.undo.close()


def kill_redis(scene: Scene) -> None:
    with scene.lab.redis.client() as client:
        client.save()
    scene.lab.redis.kill()


def redis_is_back(scene: Scene) -> None:
    scene.lab.redis.start()


def redis_is_back_empty(scene: Scene) -> None:
    scene.lab.redis.start(empty=True)


def fill_redis(scene: Scene) -> None:
    scene.lab.redis.full()
    scene.undo.callback(scene.lab.redis.full, on=False)


def promote_another_redis(scene: Scene) -> None:
    """Clients are sent to another server, which has nothing, and the old one is gone."""
    lab = scene.lab
    other = scene.undo.enter_context(RedisServer())
    scene.undo.callback(lab.redis_proxy.reset)
    scene.undo.callback(lab.redis_proxy.retarget, lab.redis.port)
    lab.redis_proxy.retarget(other.port)
    lab.redis_proxy.reset()


def on_redis(behaviour: Behaviour) -> Act:
    def inject(scene: Scene) -> None:
        scene.lab.redis_proxy.behave(behaviour)
        scene.undo.callback(scene.lab.redis_proxy.behave)

    return inject


def on_postgres(behaviour: Behaviour) -> Act:
    def inject(scene: Scene) -> None:
        scene.lab.postgres_proxy.behave(behaviour)
        scene.undo.callback(scene.lab.postgres_proxy.behave)

    return inject


def stop_postgres(scene: Scene) -> None:
    scene.lab.postgres.stop("fast")
    scene.undo.callback(scene.lab.postgres.start)


def kill_postgres(scene: Scene) -> None:
    scene.lab.postgres.kill()
    scene.undo.callback(scene.lab.postgres.start)


def stop_both(scene: Scene) -> None:
    kill_redis(scene)
    scene.undo.callback(redis_is_back_empty, scene)
    stop_postgres(scene)


def limit_connections(scene: Scene) -> None:
    postgres, database = scene.lab.postgres, scene.lab.database
    postgres.limit_connections(database, 3)
    scene.undo.callback(postgres.limit_connections, database, -1)
    postgres.terminate_backends(database)


def only_read(scene: Scene) -> None:
    scene.lab.postgres.read_only(on=True)
    scene.undo.callback(scene.lab.postgres.read_only, on=False)


def lock_tasks(scene: Scene) -> None:
    lock = "lock table a2a_tasks_task in access exclusive mode"
    scene.undo.enter_context(scene.lab.postgres.locked(lock, scene.lab.database))


async def terminate_again_and_again(scene: Scene) -> None:
    """Five times a second, one session of the host, any one."""
    while not scene.over.is_set():
        await asyncio.to_thread(
            scene.lab.postgres.execute,
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s"
            " and usename = 'host' order by random() limit 1",
            "postgres",
            scene.lab.database,
        )
        await asyncio.sleep(0.2)


async def deadlock_again_and_again(scene: Scene) -> None:
    """Lock a run, then its task, while the host locks them the other way round; the host loses."""
    while not scene.over.is_set():
        with suppress(psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
            await asyncio.to_thread(_deadlock, scene.lab)


def _deadlock(lab: Lab) -> None:
    with psycopg.connect(
        host=str(lab.postgres.directory),
        port=lab.postgres.port,
        user="postgres",
        dbname=lab.database,
        options="-c deadlock_timeout=60s -c lock_timeout=3s",
    ) as connection:
        runs = "select id, task_id from a2a_tasks_run where status = 'running'"
        found = connection.execute(f"{runs} order by random() limit 1 for update").fetchone()
        time.sleep(0.1)
        if found is not None:
            connection.execute("select from a2a_tasks_task where id = %s for update", [found[1]])


async def kill_workers_again_and_again(scene: Scene) -> None:
    """All of them, as soon as they have come back and worked for a moment."""
    while not scene.over.is_set():
        await asyncio.to_thread(scene.lab.all_ready)
        await asyncio.sleep(1 + scene.rng.random())
        for process in scene.lab.workers:
            with suppress(ProcessLookupError):
                scene.lab.hurt(process, "kill")
        await asyncio.sleep(0.5)
    await asyncio.to_thread(scene.lab.all_ready)


def kill_a_web(scene: Scene) -> None:
    scene.lab.hurt(scene.rng.choice(scene.lab.webs), "kill")


def kill_beat(scene: Scene) -> None:
    scene.lab.hurt(scene.lab.beats[0], "kill")


async def many_streams(scene: Scene) -> None:
    """Two hundred streams, twenty-five of each task; they resume wherever they find a process."""
    client = scene.client
    tasks = [client.send("lab-stream", "90", shape="long", how="poll") for _ in range(8)]
    for_each = [client.follow("lab-stream", task) for task in await asyncio.gather(*tasks) * 25]
    await asyncio.gather(*for_each)


def beside(shape: str, number: int, how: str = "poll") -> Load:
    """So many tasks of a shape, all at once, seen through to their end."""

    async def load(scene: Scene) -> None:
        agent, text = SHAPES[shape]

        async def one() -> None:
            task = await scene.client.send(agent, text, shape=shape, how=how)
            await until_over(scene, task)

        await asyncio.gather(*(one() for _ in range(number)))

    return load


async def until_over(scene: Scene, task: str) -> None:
    """Wait for a task's end by the database: what it made may be too much to ask for again and again."""
    ended = (
        "select 1 from a2a_tasks_task where public_id = %s and state in"
        " ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED')"
    )
    while True:
        with suppress(psycopg.OperationalError):
            found = await asyncio.to_thread(
                scene.lab.postgres.execute, ended, scene.lab.database, task
            )
            if found:
                return
        await asyncio.sleep(0.5)


def together(*loads: Load) -> Load:
    """All of them at once."""

    async def load(scene: Scene) -> None:
        await asyncio.gather(*(one(scene) for one in loads))

    return load


async def unread_streams(scene: Scene) -> None:
    """Ten clients subscribe to tasks that are large, and read nothing."""
    address = urlsplit(scene.lab.urls["web1"])
    for task in await large_tasks(scene):
        for _ in range(5):
            unread = socket.create_connection((str(address.hostname), address.port or 0), timeout=2)
            scene.closing.enter_context(unread)
            line = f"GET /agents/lab-large/tasks/{task}:subscribe HTTP/1.1\r\nHost: lab\r\n"
            unread.sendall(f"{line}A2A-Version: 1.0\r\nLast-Event-ID: 0\r\n\r\n".encode())


async def large_tasks(scene: Scene) -> list[str]:
    """Two tasks with 32 MB each, once they have ended."""
    agent, text = SHAPES["large"]
    send = (scene.client.send(agent, text, shape="large", how="poll") for _ in range(2))
    tasks = await asyncio.gather(*send)
    for task in tasks:
        await until_over(scene, task)
    return list(tasks)


async def lists_of_large_tasks(scene: Scene) -> None:
    """Two clients list large tasks with all they made, again and again."""
    await large_tasks(scene)
    url = f"{scene.lab.urls['web1']}/agents/lab-large/tasks?includeArtifacts=true&pageSize=100"

    async def lists() -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            while not scene.over.is_set():
                (await http.get(url, headers={"A2A-Version": "1.0"})).raise_for_status()

    await asyncio.gather(lists(), lists())


def a_worker_aside(scene: Scene) -> None:
    """One worker more, whose way to the database can be cut."""
    lab = scene.lab
    scene.proxy = scene.closing.enter_context(Proxy(lab.postgres.port))
    url = lab.postgres.url(lab.database, port=scene.proxy.port)
    scene.aside = scene.closing.enter_context(lab.another_worker("aside", DATABASE_URL=url))


def cut_it_off(scene: Scene) -> None:
    """As soon as it has something to lose. What it sends now arrives when the way is free again."""
    assert scene.aside and scene.proxy
    holds = "select count(*) from a2a_tasks_run where status = 'running' and worker like %s"
    pid, database = scene.aside.pid, scene.lab.database
    eventually(
        lambda: scene.lab.postgres.execute(holds, database, f"%:{pid}") > [(0,)], 10, "no run"
    )
    scene.seen.cut_off = (pid, time.time())
    scene.proxy.behave(Behaviour.partition())
    scene.undo.callback(scene.proxy.behave)


def take_descriptors(scene: Scene) -> None:
    """A web process may open six files more; then somebody opens forty connections to it."""
    pid = scene.lab.webs[0].pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    most = len(list(Path(f"/proc/{pid}/fd").iterdir())) + 6
    scene.undo.callback(resource.prlimit, pid, resource.RLIMIT_NOFILE, limits)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, limits[1]))
    address = urlsplit(scene.lab.urls["web1"])
    for _ in range(40):
        opened = socket.create_connection((str(address.hostname), address.port or 0), timeout=2)
        scene.undo.enter_context(opened)


# --- outages in sequence, and servers that lack something ------------------------------------------


async def restart_ten_times(scene: Scene) -> None:
    for _ in range(10):
        await asyncio.to_thread(scene.lab.postgres.restart, "fast")
        await asyncio.sleep(2.5)


def restart_pgbouncer(scene: Scene) -> None:
    scene.lab.pool.signal(signal.SIGTERM)
    scene.lab.pool.wait()
    scene.lab.pool.start()


async def fill_the_disk(scene: Scene) -> None:
    """Take what room there is, and what becomes free."""
    filler = scene.lab.postgres.directory / "filler"
    scene.undo.callback(scene.lab.postgres.start)  # it may have ended
    scene.undo.callback(filler.unlink)
    while not scene.over.is_set():
        with suppress(OSError), filler.open("ab", buffering=0) as more:
            while more.write(bytes(65536)):
                pass
        await asyncio.sleep(0.05)


def limit_memory(pids: Sequence[int], more: int | None, user: int | None = None) -> None:
    """These processes, of that user, may have so many bytes more than now; None = as many as they like."""
    for pid in pids:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        most = "unlimited" if more is None else pages * resource.getpagesize() + more
        command = ["prlimit", "--pid", str(pid), f"--as={most}:"]
        subprocess.run(command, user=user, check=more is not None, stderr=subprocess.DEVNULL)


def starve_postgres(scene: Scene) -> None:
    """The server and its sessions get no more memory: PostgreSQL answers 53200."""
    postgres = scene.lab.postgres
    scene.undo.callback(postgres.start)  # it may have ended
    scene.undo.callback(lambda: limit_memory(postgres.processes(), None, server_user()))
    limit_memory(postgres.processes(), 64 * 1024, server_user())


def starve_workers(scene: Scene) -> None:
    """Workers may have 200 MB more, which is less than what some of their agents take."""
    pids = [process.pid for process in scene.lab.workers]
    scene.undo.callback(limit_memory, pids, None)
    limit_memory(pids, 200 * 1024 * 1024)


# --- clocks and frozen machines --------------------------------------------------------------------

CLOCK = Path(__file__).parent / "clock.c"
HOUR = 3600


def workers_with_clocks(scene: Scene) -> None:
    """Two workers more, whose clocks can be set. That takes a C compiler."""
    library = scene.lab.directory / "clock.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(CLOCK), "-ldl"]
    subprocess.run(command, check=True)
    for name in ("ahead", "behind"):
        set_clock(scene, name, 0)
        environ = {"LD_PRELOAD": str(library), "CLOCK": str(scene.lab.directory / name)}
        scene.closing.enter_context(scene.lab.another_worker(name, **environ))


def set_clock(scene: Scene, name: str, wrong: int) -> None:
    path = scene.lab.directory / name
    path.touch()
    with path.open("r+b", buffering=0) as clock:
        clock.write(wrong.to_bytes(8, sys.byteorder, signed=True))


def step_clocks(scene: Scene) -> None:
    """One goes an hour ahead, the other an hour behind, and the workers with a right clock are killed."""
    for name, wrong in (("ahead", HOUR), ("behind", -HOUR)):
        set_clock(scene, name, wrong)
        scene.undo.callback(set_clock, scene, name, 0)
    for process in scene.lab.workers:
        scene.lab.hurt(process, "kill")


def freeze(*kinds: str) -> Act:
    """Freeze processes of these kinds, all of them or the first, until the fault is mended."""

    def inject(scene: Scene) -> None:
        for kind in kinds:
            name, _, first = kind.partition(":")
            for process in getattr(scene.lab, name)[: 1 if first else None]:
                scene.lab.hurt(process, "stop")
                scene.undo.callback(scene.lab.hurt, process, "cont")

    return inject


# --- a standby -------------------------------------------------------------------------------------


def follow_primary(scene: Scene) -> None:
    """The database gets a standby, and every commit waits for it."""
    primary = scene.lab.postgres
    scene.standby = Standby(primary)
    scene.standby.start()
    primary.execute("alter system set synchronous_standby_names = '*'")
    primary.execute("select pg_reload_conf()")
    waits = "select 1 from pg_stat_replication where sync_state = 'sync'"
    eventually(lambda: primary.execute(waits), 30, "nobody follows")


def promote(scene: Scene) -> None:
    """The database is killed; its standby takes its place."""
    lab, primary = scene.lab, scene.lab.postgres
    assert scene.standby
    primary.kill()
    scene.standby.promote()
    lab.postgres = scene.standby
    lab.postgres_proxy.retarget(lab.postgres.port)
    lab.postgres_proxy.reset()
    primary.close()
