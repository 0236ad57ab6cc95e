"""What is done to a lab's servers, network and processes, and how it is taken back.

An act is called in a thread with the scene of a run; what takes it back goes on the scene's stack.
"""

from __future__ import annotations

import asyncio
import random
import resource
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.campaigns.faultlab.client import Client
from tests.campaigns.faultlab.lab import Lab
from tests.campaigns.faultlab.private import eventually
from tests.campaigns.faultlab.processes import Process, worker
from tests.campaigns.faultlab.promises import Seen
from tests.campaigns.faultlab.proxy import Behaviour, Proxy
from tests.campaigns.faultlab.redis_server import RedisServer

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


Act = Callable[[Scene], object]


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
    locked = scene.lab.postgres.lock_table("a2a_tasks_task", scene.lab.database)
    scene.undo.enter_context(locked)


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


async def spinning_agents(scene: Scene) -> None:
    """Agents that hold the loop and the GIL of their workers, for longer than a lease."""
    sends = (
        scene.client.send("lab-blocking", "100", shape="blocking", how="poll") for _ in range(2)
    )
    for task in await asyncio.gather(*sends):
        await scene.client.until_settled("lab-blocking", task)


def a_worker_aside(scene: Scene) -> None:
    """One worker more, whose way to the database can be cut."""
    lab = scene.lab
    scene.proxy = scene.closing.enter_context(Proxy(lab.postgres.port))
    url = lab.postgres.url(lab.database, port=scene.proxy.port)
    scene.aside = worker(
        "aside",
        environ={**lab.environ, "DATABASE_URL": url},
        directory=lab.plan.source,
        logs=lab.logs,
        tell=lab.tell,
    )
    scene.closing.callback(scene.aside.stop)
    scene.aside.start()
    scene.aside.wait_ready()


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
