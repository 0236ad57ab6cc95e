"""A whole host with clients and receivers, and the Prometheus that looks at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import httpx

from lab.faultlab.private import eventually
from lab.metrics.agents_app.agents import VICTIMS
from lab.metrics.prometheus import EVERY, Prometheus
from tests import backend
from tests.journeys import hosts
from tests.journeys.wire import message
from tests.support.ports import free_port
from tests.support.processes import Child
from tests.support.proxy import Proxy

__all__ = ["Lab"]

#: Seconds that Prometheus may take to see a fault, and its end.
PATIENCE = 90.0
ENVIRON = {
    **hosts.SHARED,
    "A2A_APPS": "examples.demo,lab.metrics.agents_app",
    "A2A_METRICS_PEERS": "127.0.0.1",
    "A2A_POLL_SECONDS": "0.3",
    "A2A_PARK_SECONDS": "0.2",
    "A2A_WEBHOOK_SECONDS": "1",
    "A2A_DRAIN_SECONDS": "1",
}


class Receiver(BaseHTTPRequestHandler):
    """A receiver of webhooks: what comes to `/fails` is answered by 500, all else by 200."""

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500 if self.path == "/fails" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Lab:
    """The processes, from their start to the end of `running`."""

    def __init__(self, running: ExitStack) -> None:
        """Start all of it, and clients that do what clients do until the end."""
        self._running, self._stopped = running, threading.Event()
        server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        running.callback(server.server_close)
        running.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.receiver = f"http://127.0.0.1:{server.server_port}"
        self.listening = {
            name: f"127.0.0.1:{free_port()}" for name in ("worker", VICTIMS, "pusher")
        }
        url = urlsplit(backend.children()["DATABASE_URL"])
        self.way = running.enter_context(Proxy(url.port or 5432, url.hostname or "127.0.0.1"))
        login = url.netloc.rpartition("@")[0]
        far = urlunsplit(url._replace(netloc=f"{login}@127.0.0.1:{self.way.port}"))
        self.here, self.there = hosts.together(
            running, hosts.web(ENVIRON), hosts.web({**ENVIRON, "DATABASE_URL": far})
        )
        self.worker, self.victims, self.pusher = hosts.together(
            running,
            hosts.worker(1, self.environ("worker"), "agents"),
            hosts.worker(2, self.environ(VICTIMS), VICTIMS),
            hosts.pusher(1, self.environ("pusher")),
        )
        webs = {web.url.removeprefix("http://"): "web" for web in (self.here, self.there)}
        kinds = {self.listening[name]: name for name in ("worker", "pusher")}
        others = {self.listening[VICTIMS]: "worker"}
        self.prometheus = running.enter_context(Prometheus({**webs, **kinds, **others}))
        self.begun = time.time()
        self.fired = set[str]()
        self.http = running.enter_context(httpx.Client(timeout=60, trust_env=False))
        traffic = threading.Thread(target=self._live)
        traffic.start()
        running.callback(traffic.join)
        running.callback(self._stopped.set)

    def environ(self, name: str, **more: str) -> dict[str, str]:
        """The variables of a process that listens for Prometheus."""
        return {**ENVIRON, "A2A_METRICS_LISTEN": self.listening[name], **more}

    def start_victims(self) -> None:
        """Start their worker again."""
        again = hosts.worker(2, self.environ(VICTIMS), VICTIMS)
        self.victims = self._running.enter_context(again)

    def start_pusher(self, number: int, **more: str) -> Child:
        """Start another pusher in the place of the one that is gone."""
        return self._running.enter_context(hosts.pusher(number, self.environ("pusher", **more)))

    def send(self, agent: str, text: str, *, task: str = "", hook: str = "") -> str:
        """Send a message without waiting; the id of its task."""
        configuration: dict[str, Any] = {"returnImmediately": True}
        if hook:
            configuration["taskPushNotificationConfig"] = {"url": f"{self.receiver}{hook}"}
        asked = message(text, configuration=configuration)
        if task:
            asked["message"]["taskId"] = task
        answer = self.http.post(f"{self.here.url}/agents/{agent}/message:send", json=asked)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["task"]["id"])

    def get(self, *, there: bool = False, task: str = "nobody's") -> int:
        """Ask for a task; the status of the answer."""
        web = self.there if there else self.here
        return self.http.get(f"{web.url}/agents/demo/tasks/{task}").status_code

    def _live(self) -> None:
        """Do what clients do: they send and follow, make mistakes, ask and answer."""
        while not self._stopped.is_set():
            self.get()
            url = f"{self.here.url}/agents/demo/message"
            self.http.post(f"{url}:send", json=message("echo hi"))
            with self.http.stream("POST", f"{url}:stream", json=message("count 3 0.1")) as answer:
                answer.read()
            self._speak_old()
            self.send("spender", "spend", hook="/ok")
            question = self.send("demo", "ask")
            self._stopped.wait(EVERY + 1)  # Prometheus sees that it waits
            self.send("demo", "yes", task=question)

    def _speak_old(self) -> None:
        """Send a message in an older version of the protocol (A2A 0.3), over JSON-RPC."""
        parts = [{"kind": "text", "text": "echo hi"}]
        said = {"kind": "message", "messageId": uuid4().hex, "role": "user", "parts": parts}
        call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": said}}
        answer = self.http.post(f"{self.here.url}/agents/demo/", json=call)
        assert "result" in answer.json(), answer.text

    def fires(self, *alerts: str, meanwhile: Callable[[], object] = bool) -> None:
        """Wait until these alerts fire, and do this again and again meanwhile."""

        def look() -> bool:
            meanwhile()
            return self.prometheus.firing() >= set(alerts)

        eventually(look, PATIENCE, f"fires: {alerts}")
        self.fired |= set(alerts)

    def recovers(self, *alerts: str) -> None:
        """Wait until they fire no more."""

        def is_over() -> bool:
            return not self.prometheus.firing() & set(alerts)

        eventually(is_over, PATIENCE, f"still fires: {alerts}")
