"""The files around the code say what they should: compose, image, requirements, Makefile, CI, decisions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from a2a_grpc.binding.service import SERVICES
from a2a_tasks.conf import Constants, HostSettings
from tests import ROOT
from tests.support.compose import VARIABLE
from tests.support.dockerfile import instructions
from tests.support.procfile import command_of

OURS = ["migrate", "web", "grpc", "worker", "pusher", "beat"]
LOCAL_OPTIONS = {"-A", "-l", "-n", "--pid", "--pidfile", "--schedule"}
SECRETS = ["SECRET_KEY", "POSTGRES_PASSWORD"]


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    """Read the services of the compose file."""
    services: dict[str, dict[str, Any]] = yaml.safe_load(text("docker-compose.yml"))["services"]
    return services


def text(path: str) -> str:
    """Read a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


def essence(command: Sequence[str]) -> list[str]:
    """Leave out of a command what differs from machine to machine: the interpreter, and where things are."""
    words = list(command)
    local = {n + more for n, word in enumerate(words) if word in LOCAL_OPTIONS for more in (0, 1)}
    return [word for n, word in enumerate(words) if n not in local]


class TestCompose:
    def test_names_the_servers_and_our_processes(self, services: dict[str, Any]) -> None:
        assert sorted(services) == sorted(["nginx", "postgres", "redis", *OURS])
        assert services["web"]["scale"] == 2

    @pytest.mark.parametrize("name", OURS)
    def test_our_processes_share_image_and_environment(
        self, services: dict[str, Any], name: str
    ) -> None:
        assert services[name]["image"] == services["web"]["image"]
        shared = services["migrate"]["environment"]
        assert shared.items() <= services[name]["environment"].items()
        assert {"DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "SECRET_KEY"} <= set(shared)

    def test_whatever_keeps_running_has_a_healthcheck(self, services: dict[str, Any]) -> None:
        checks = {name: service.get("healthcheck", {}) for name, service in services.items()}
        assert {name for name, check in checks.items() if "test" not in check} == {"migrate"}
        assert checks["migrate"] == {"disable": True}  # it ends; the others wait for its success

    @pytest.mark.parametrize("name", ["nginx", "redis", *OURS])
    def test_a_process_has_no_rights_and_nothing_to_write_to(
        self, services: dict[str, Any], name: str
    ) -> None:
        service = services[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "build" in service or int(service["user"].split(":")[0]) > 0  # ours: by the image

    def test_whoever_depends_on_a_service_waits_until_it_is_well(
        self, services: dict[str, Any]
    ) -> None:
        needs = {name: service.get("depends_on", {}) for name, service in services.items()}
        assert {name for name, needed in needs.items() if not needed} == {"postgres", "redis"}
        for needed in needs.values():
            for name, condition in needed.items():
                wanted = "completed_successfully" if name == "migrate" else "healthy"
                assert condition == {"condition": f"service_{wanted}"}

    def test_every_variable_is_on_a_page(self) -> None:
        pages = text("docs/production.md") + text("docs/reference/settings.md")
        named = {found["name"] for found in VARIABLE.finditer(text("docker-compose.yml"))}
        assert sorted(name for name in named - {None} if f"`{name}`" not in pages) == []

    @pytest.mark.parametrize("name", ["web", "grpc", "worker", "pusher", "beat"])
    def test_nothing_starts_before_the_tables_are_there(
        self, services: dict[str, Any], name: str
    ) -> None:
        needed = services[name]["depends_on"]["migrate"]["condition"]
        assert needed == "service_completed_successfully"

    def test_runs_the_commands_of_the_stack_without_containers(
        self, services: dict[str, Any]
    ) -> None:
        for name in ("web", "worker", "pusher", "beat"):
            assert essence(services[name]["command"]) == essence(command_of(name))

    @pytest.mark.parametrize("name", ["web", "worker", "beat"])
    def test_a_process_may_drain_before_it_is_killed(
        self, services: dict[str, Any], name: str
    ) -> None:
        grace = re.search(r":-(\d+)s}", services[name]["stop_grace_period"])
        drain = re.search(r":-(\d+)}", services[name]["environment"]["A2A_DRAIN_SECONDS"])
        assert grace is not None
        assert drain is not None
        assert float(drain[1]) == HostSettings.__dict__["DRAIN_SECONDS"]
        assert float(grace[1]) >= float(drain[1]) + 5

    @pytest.mark.parametrize("secret", SECRETS)
    def test_secrets_have_no_default(self, secret: str) -> None:
        uses = re.findall(rf"\$\{{{secret}(?![A-Z_])(.*?)\}}", text("docker-compose.yml"))
        assert uses
        assert all(use.startswith(":?") for use in uses)

    def test_only_what_serves_is_reached_from_outside(self, services: dict[str, Any]) -> None:
        assert [name for name, service in services.items() if "ports" in service] == ["nginx"]


class TestImage:
    def test_does_not_run_as_root(self) -> None:
        user = re.findall(r"^USER (.+)$", text("Dockerfile"), flags=re.MULTILINE)
        assert user[-1:] == ["10001"]

    def test_what_is_copied_is_let_into_the_build(self) -> None:
        lines = [rest.split() for word, rest in instructions(text("Dockerfile")) if word == "COPY"]
        copied = {each for words in lines if "--from" not in words[0] for each in words[:-1]}
        assert copied == set(re.findall(r"^!(\S+)", text(".dockerignore"), flags=re.MULTILINE))

    @pytest.mark.checkout
    def test_every_installed_package_of_ours_is_copied(self) -> None:
        packages = {path.parent.name for path in ROOT.glob("a2a_*/__init__.py")}
        assert all(f"COPY {package} {package}" in text("Dockerfile") for package in packages)


class TestRequirements:
    @pytest.mark.parametrize(
        "path",
        [f"requirements{extra}.txt" for extra in ("", "-sso", "-otel", "-prices", "-mcp", "-test")],
    )
    def test_every_package_is_pinned(self, path: str) -> None:
        lines = [line.split("#")[0].strip() for line in text(path).splitlines()]
        loose = [line for line in lines if line and "==" not in line]
        included = [
            f"-r requirements{extra}.txt" for extra in ("", "-sso", "-otel", "-prices", "-mcp")
        ]
        assert loose == (included if "test" in path else [])


class TestMakefile:
    def test_alone_it_explains_every_target(self) -> None:
        shown = re.findall(r"^  (\S+)", self.make(["make"]).stdout, flags=re.MULTILINE)
        phony = re.findall(r"^\.PHONY: (.+)$", text("Makefile"), flags=re.MULTILINE)[0].split()
        assert shown == phony

    def test_an_old_python_is_refused_in_words(self, tmp_path: Path) -> None:
        old = tmp_path / "python"
        pretend = "import sys; sys.version_info = (3, 9, 18); exec(sys.argv[2])"
        old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{pretend}" "$@"\n')
        old.chmod(0o755)
        said = self.make_venv(tmp_path, old)
        assert "Python 3.11 or newer is needed" in said
        assert "is 3.9." in said

    def test_a_missing_python_is_refused_in_words(self, tmp_path: Path) -> None:
        assert "Install Python 3.11 or newer" in self.make_venv(tmp_path, tmp_path / "nothing")

    @pytest.mark.checkout
    def test_what_is_for_one_backend_is_in_the_list_of_that_backend(self) -> None:
        """Otherwise no command would run it."""
        ask = "print-lists: ; @echo $(ON_SQLITE); echo $(ON_STACK)"
        printed = self.make(["make", "-s", "-f", "Makefile", "-f", "-", "print-lists"], ask).stdout
        lists = dict(zip(("sqlite", "stack"), map(str.split, printed.splitlines()), strict=True))
        marks = re.compile(r'mark\.(?:backend|quick_on)\("(\w+)"\)')
        paths = (path.relative_to(ROOT) for path in ROOT.glob("tests/*/**/test_*.py"))
        left_out = [
            (str(path), backend)
            for path in paths
            for backend in set(marks.findall(text(str(path))))
            if not any(path.is_relative_to(listed) for listed in lists[backend])
        ]
        assert left_out == []

    def make_venv(self, directory: Path, python: Path) -> str:
        """Let make fail in the directory, and return what it said."""
        made = self.make(
            ["make", "-C", directory, "-f", ROOT / "Makefile", f"PYTHON={python}", ".venv/.made"]
        )
        assert made.returncode != 0
        assert not (directory / ".venv").exists()
        return made.stdout + made.stderr

    def make(
        self, command: Sequence[str | Path], rules: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run make as from a shell, also when these tests were started by make. `rules` is its standard input."""
        environ = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        return subprocess.run(  # noqa: S603
            command, cwd=ROOT, env=environ, input=rules, capture_output=True, text=True, check=False
        )


def made_by_ci(tmp_path: Path, began: int = 0) -> list[str]:
    """What CI makes on a machine on which everything is quick, or has taken so many seconds already."""
    make, told = tmp_path / "make", tmp_path / "told"
    make.write_text(f'#!/bin/sh\necho "$*" >> {told}\n')
    make.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SECONDS": str(began)}
    run = [str(ROOT / ".ci" / "run")]
    subprocess.run(run, check=True, env=environ, stdout=subprocess.DEVNULL)  # noqa: S603
    return told.read_text().splitlines()


class TestNginx:
    """`lab/server/test_nginx.py` runs it, `lab/containers` that of compose."""

    def test_that_of_compose_has_the_sizes_and_times_of_the_other(self) -> None:
        shared = r"(client_max_body_size|\w+_read_timeout|client_\w+_timeout|send_timeout) (\S+);"
        alone, inside = (
            set(re.findall(shared, text(f"deploy/nginx/{name}.conf")))
            for name in ("a2a", "compose")
        )
        assert alone == inside

    def test_agrees_with_the_settings_of_the_host(self) -> None:
        body = re.findall(r"client_max_body_size (\d+)m;", text("deploy/nginx/a2a.conf"))
        assert int(body[0]) * 1024 * 1024 == HostSettings.__dict__["MAX_BODY_BYTES"]
        waits = re.findall(r"_read_timeout (\d+)s;", text("deploy/nginx/a2a.conf"))
        assert all(float(wait) > Constants.MAX_BLOCK_SECONDS for wait in waits)
        header = (
            f"proxy_set_header {HostSettings.__dict__['MTLS_HEADER']} $ssl_client_escaped_cert;"
        )
        assert header in text("deploy/nginx/a2a.conf")

    def test_passes_every_service_to_grpc(self) -> None:
        (path,) = re.findall(r"location ~ (\S+A2AService\S+) ", text("deploy/nginx/a2a.conf"))
        assert [name for name in SERVICES if not re.match(path, f"/{name}/SendMessage")] == []


class TestCI:
    def test_runs_the_checks_the_suite_and_every_campaign(self, tmp_path: Path) -> None:
        checks, site, suite, smoke, *campaigns = made_by_ci(tmp_path)
        assert (checks, site, suite, smoke) == ("check", "docs", "test", "lab-smoke")
        folders = {path.parent.name for path in ROOT.glob("lab/*/test_*.py")}
        (wires,) = (made for made in campaigns if made.startswith("test-stack "))
        assert all((ROOT / path).exists() for path in wires.partition("=")[2].split())
        campaigns.remove(wires)
        assert {made.rpartition("/")[2] for made in campaigns} == folders
        assert all(made.startswith("lab-test TESTS=lab/") for made in campaigns)

    def test_begins_no_campaign_that_may_not_end_in_time(self, tmp_path: Path) -> None:
        minutes = int(re.findall(r"^minutes=(\d+)$", text(".ci/run"), re.M)[0])
        short = made_by_ci(tmp_path, began=(minutes - 3) * 60)
        assert "lab-test TESTS=lab/policy" in short
        assert "lab-test TESTS=lab/outages" not in short

    def test_leaves_them_when_time_is_up(self, tmp_path: Path) -> None:
        assert made_by_ci(tmp_path, began=50 * 60) == ["check", "docs", "test", "lab-smoke"]


class TestDecisions:
    def test_no_two_records_have_one_number(self) -> None:
        numbers = Counter(path.name[:4] for path in self.records())
        assert [number for number, times in numbers.items() if times > 1] == []
        assert all(number.isdigit() for number in numbers)

    def test_the_index_names_every_record(self) -> None:
        index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
        assert [page.name for page in self.records() if f"({page.name})" not in index] == []

    def records(self) -> list[Path]:
        pages = (ROOT / "docs" / "decisions").glob("*.md")
        return sorted(page for page in pages if page.name != "README.md")


EXTRAS: dict[str, list[str]] = tomllib.loads(text("pyproject.toml"))["project"][
    "optional-dependencies"
]


class TestRanges:
    def test_the_pinned_host_is_within_the_ranges_of_the_package(self) -> None:
        project = tomllib.loads(text("pyproject.toml"))["project"]
        ranges = {r.name.lower(): r for r in map(Requirement, project["dependencies"])}
        pins = self.read_pins("requirements.txt")
        assert ranges.keys() == pins.keys()
        assert [name for name, pin in pins.items() if pin not in ranges[name].specifier] == []

    @pytest.mark.parametrize("extra", EXTRAS)
    def test_an_extra_has_ranges_in_which_the_pins_of_the_checkout_lie(self, extra: str) -> None:
        """Exact versions in the metadata of a package conflict with those of other packages."""
        named = list(map(Requirement, EXTRAS[extra]))
        kept = self.read_requirements(f"requirements-{extra}.txt")
        assert {(r.name, *r.extras) for r in named} == {(r.name, *r.extras) for r in kept}
        pins = {r.name: str(r.specifier).removeprefix("==") for r in kept}
        assert [r.name for r in named if {"==", "==="} & {s.operator for s in r.specifier}] == []
        loose = [r for r in named if str(r.specifier) != pins[r.name]]
        assert [r.name for r in loose if pins[r.name] not in r.specifier] == []

    @staticmethod
    def read_requirements(path: str) -> list[Requirement]:
        """The requirements of a file."""
        lines = (line.split("#")[0].strip() for line in text(path).splitlines())
        return [Requirement(line) for line in lines if line]

    def test_the_constraints_have_the_pins_of_the_host(self) -> None:
        assert (
            self.read_pins("requirements.txt").items() <= self.read_pins("constraints.txt").items()
        )

    def read_pins(self, path: str) -> dict[str, str]:
        """The versions of a file, by package."""
        lines = [line.split("#")[0].strip() for line in text(path).splitlines()]
        pinned = (line.split("==") for line in lines if line)
        return {name.partition("[")[0].lower(): version for name, version in pinned}
