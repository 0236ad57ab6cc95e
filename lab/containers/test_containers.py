"""The image as the Dockerfile builds it, and the services as the compose file starts them: nothing but the engine differs."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2

from lab.containers.image import Image, build
from lab.containers.namespaces import Space
from lab.containers.stack import Stack, stack
from tests import ROOT
from tests.journeys.wire import message
from tests.support.dockerfile import instructions
from tests.support.execution.waiting import eventually

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(900)]
SEND = "/agents/demo/message:send"
#: In the order of the conditions of the compose file.
OURS = ("web", "grpc", "worker", "pusher", "beat")


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """The image."""
    with tempfile.TemporaryDirectory(prefix="a2a-image-") as folder:
        yield build(Path(folder))


@pytest.fixture(scope="module")
def site(image: Image) -> Iterator[Stack]:
    """The whole compose file, every service well."""
    with stack(image) as made:
        assert made.run("migrate") == 0, made.logs()
        for name in OURS:
            for number in range(made.services[name].get("scale", 1)):
                made.start(name, number)
        for name in OURS:
            made.containers[f"{name}-1"].await_health()
        made.containers["web-2"].await_health()
        made.start("nginx").await_health()
        made.publish()
        yield made


@pytest.fixture(scope="module")
def client(site: Stack) -> Iterator[httpx.Client]:
    """A caller with an API key, at the published port."""
    made = site.containers["web-1"].run(["python", "manage.py", "api_keys", "create", "robot"])
    key = re.search(r"\S{30,}", made.stdout)
    assert key is not None, made
    with httpx.Client(base_url=site.url, headers={"X-API-Key": key[0]}, timeout=60) as http:
        yield http


def ask(client: httpx.Client, text: str) -> dict[str, Any]:
    """The task of a message, when it has ended."""
    answer = client.post(SEND, json=message(text))
    assert answer.status_code == 200, answer.text
    task: dict[str, Any] = answer.json()["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    return task


class TestImage:
    def test_every_line_of_the_last_stage_ran(self, image: Image) -> None:
        words = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
        last = max(n for n, (word, _) in enumerate(words) if word == "FROM")
        assert list(image.ran) == [rest for word, rest in words[last:] if word == "RUN"]

    def test_has_neither_tests_nor_what_installs_packages(self, image: Image) -> None:
        assert not (image.root.path / "host" / "tests").exists()
        packages = {path.name for path in (image.root.path / "opt").glob("**/site-packages/*")}
        assert {"django", "celery", "gunicorn"} <= packages
        assert packages.isdisjoint({"pip", "setuptools", "pytest", "hypothesis"})

    def test_nothing_in_it_can_be_written_to(self, image: Image) -> None:
        writable = "for d in / /host /opt /etc /usr/local /srv /srv/files /tmp; do touch $d/x 2>&- && echo $d; done"
        space = Space(image.root, image.environ, image.directory, image.user, confined=True)
        assert space.run(["/bin/sh", "-c", f"{writable}; id -u"]).split() == ["/tmp", "10001"]

    def test_its_code_is_compiled(self, image: Image) -> None:
        code = image.root.path / "host"
        assert len(list(code.rglob("*.py"))) == len(list(code.rglob("*.pyc"))) > 100


class TestServices:
    def test_an_agent_answers_through_nginx_by_both_web_processes(
        self, site: Stack, client: httpx.Client
    ) -> None:
        for number in range(10):
            task = ask(client, f"echo {number}")
            assert task["artifacts"][0]["parts"][0]["text"] == str(number)
        log = site.containers["nginx-1"].log.read_text()
        assert all(f"{address}:8000" in log for address in site.addresses["web"]), log

    def test_events_come_while_the_agent_still_runs(self, client: httpx.Client) -> None:
        with client.stream("POST", "/agents/demo/message:stream", json=message("count 2 60")) as (
            answer
        ):
            lines = answer.iter_lines()
            task = next(found[1] for line in lines if (found := re.search(r'"id":"(\S+?)"', line)))
            assert next(line for line in lines if "artifactUpdate" in line)
            assert client.post(f"/agents/demo/tasks/{task}:cancel").status_code == 200
            assert any("TASK_STATE_CANCELED" in line for line in lines)

    def test_grpc_is_answered_through_nginx(self, site: Stack, client: httpx.Client) -> None:
        said = a2a_pb2.Message(message_id="m", role=a2a_pb2.ROLE_USER, parts=[{"text": "echo x"}])
        request = a2a_pb2.SendMessageRequest(message=said, tenant="demo")
        with grpc.insecure_channel(site.grpc) as channel:
            send: Any = channel.unary_unary("/lf.a2a.v1.A2AService/SendMessage")
            key = (("x-api-key", client.headers["X-API-Key"]),)
            answer = send(request.SerializeToString(), timeout=60, metadata=key)
        task = a2a_pb2.SendMessageResponse.FromString(answer).task
        assert task.status.state == a2a_pb2.TASK_STATE_COMPLETED

    def test_a_large_file_of_a_worker_is_downloaded_from_a_web_process(
        self, site: Stack, client: httpx.Client
    ) -> None:
        text = "x" * 100_000
        task = ask(client, f"file {text}")
        (url, _) = (part["url"] for each in task["artifacts"] for part in each["parts"])
        assert url.startswith(f"{site.url}/agents/demo/files/")
        assert client.get(url).text == text

    def test_strangers_and_metrics_stay_outside(self, site: Stack, client: httpx.Client) -> None:
        assert httpx.post(f"{site.url}{SEND}", json=message("echo")).status_code == 401
        assert client.get("/metrics").status_code == 404

    def test_a_web_process_ends_and_comes_back_and_every_request_is_answered(
        self, site: Stack, client: httpx.Client
    ) -> None:
        assert site.containers["web-1"].end() == 0
        for number in range(6):
            ask(client, f"echo {number}")
        site.start("web").await_health()
        log = site.containers["nginx-1"].log

        def serves() -> bool:
            before = log.read_text()
            ask(client, "echo again")
            return f"{site.addresses['web'][0]}:8000" in log.read_text().removeprefix(before)

        eventually(serves)

    def test_the_command_of_the_image_itself_serves(self, site: Stack) -> None:
        container = site.start("image")
        container.await_health()
        assert container.end() == 0


class TestHealth:
    def test_a_process_whose_work_does_not_turn_is_not_well(self, site: Stack) -> None:
        stopped = [site.containers[f"{name}-1"] for name in ("worker", "pusher", "beat", "grpc")]
        for container in stopped:
            container.process.send_signal(signal.SIGSTOP)
        for container in stopped:
            container.await_health(well=False)
        for container in stopped:
            container.process.send_signal(signal.SIGCONT)
        for container in stopped:
            container.await_health()

    def test_every_process_ends_by_its_signal_within_its_time(self, site: Stack) -> None:
        codes = {
            name: each.end()
            for name, each in site.containers.items()
            if each.process.poll() is None
        }
        assert set(codes.values()) == {0}, (codes, site.logs())
        assert {name.rpartition("-")[0] for name in codes} == {*OURS, "nginx"}
