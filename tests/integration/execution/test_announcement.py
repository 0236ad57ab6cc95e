"""What a worker in an environment of its own announces, and what becomes of a refusal or an outage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from a2a_project import startup
from a2a_tasks.agents import registry
from a2a_tasks.agents.declaration import UnfitManifest, read_manifest, sign
from a2a_tasks.execution import announcement
from a2a_tasks.execution.announcement import announce_agents, announce_manifest, make_manifest
from a2a_tasks.models import AgentVersion, AuditEntry
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import versions
from a2a_tasks.store.db import run_here

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
#: This process has agents with versions that a clash of slugs and lengths does not touch.
KEY = "k" * 32


@pytest.fixture(autouse=True)
def environment(settings: Any) -> None:
    """This process is a worker of the environment adk."""
    settings.A2A_ENVIRONMENT = "adk"


@pytest.mark.parametrize("copied", ["", "agents,push"])
def test_its_queues_are_those_of_its_versions(copied: str, settings: Any) -> None:
    settings.A2A_QUEUES = copied
    queues = [f"{agent.slug}@{agent.version}" for agent in registry.list_own()]
    assert registry.queues() == sorted(queues)
    assert "demo@1.0.0" in queues


def test_a_manifest_is_read_as_it_was_written() -> None:
    written = msgspec.json.encode(make_manifest())
    manifest = read_manifest(written, host="0.1.0")
    names = announce_manifest(manifest)
    assert names == [f"{agent.slug} {agent.version}" for agent in registry.list_own()]
    assert {row.environment for row in AgentVersion.objects.all()} == {"adk"}


def test_an_edited_manifest_has_no_valid_signature(settings: Any) -> None:
    settings.A2A_ENVIRONMENT_KEY, settings.A2A_ENVIRONMENT_KEYS = KEY, f"adk={KEY}"
    settings.A2A_ENVIRONMENT_AGENTS = "adk=*"
    text = msgspec.json.encode(make_manifest())
    announce_manifest(read_manifest(text.replace(b'"Demo"', b'"Evil"'), host="0.1.0"))
    assert versions.read_versions()["demo"] == []
    announce_manifest(read_manifest(text, host="0.1.0"))
    assert versions.read_versions()["demo"] != []


def test_what_the_command_writes_keeps_its_signatures(settings: Any, tmp_path: Path) -> None:
    settings.A2A_ENVIRONMENT_KEY, settings.A2A_ENVIRONMENT_KEYS = KEY, f"adk={KEY}"
    settings.A2A_ENVIRONMENT_AGENTS = "adk=*"
    manifest = tmp_path / "adk.json"
    with manifest.open("w") as file:
        call_command("agent_versions", "manifest", stdout=file)
    call_command("agent_versions", "announce", str(manifest))
    settings.A2A_ENVIRONMENT = ""
    assert set(versions.read_versions()) == {agent.slug for agent in registry.list_own()}
    assert all(versions.read_versions().values())


def test_a_manifest_with_too_few_signatures_is_refused() -> None:
    manifest = msgspec.structs.replace(make_manifest(), signatures=(sign(KEY, "adk", b""),))
    with pytest.raises(UnfitManifest, match="one signature for each agent"):
        announce_manifest(manifest)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "ädk"])
def test_an_environment_needs_a_name(name: str, settings: Any) -> None:
    settings.A2A_ENVIRONMENT = name
    with pytest.raises(UnfitManifest, match="A2A_ENVIRONMENT must name"):
        make_manifest()


def test_a_short_secret_signs_nothing(settings: Any) -> None:
    settings.A2A_ENVIRONMENT_KEY = "k" * 31
    with pytest.raises(UnfitManifest, match="must have at least 32 characters"):
        make_manifest()


def test_a_worker_announces_under_its_own_name_and_waits_for_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusals = [Overloaded(), Overloaded()]

    def run(work: Any, *args: Any, **named: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return run_here(work, *args, **named)

    monkeypatch.setattr(announcement, "run_here", run)
    monkeypatch.setattr(announcement, "AGAIN_SECONDS", 0.0)
    announce_agents()
    entries = AuditEntry.objects.filter(action="agent.announce")
    assert {row.actor for row in entries} == {"environment:adk"}
    assert entries.count() == AgentVersion.objects.count() == len(registry.list_own())


def test_a_worker_without_reports_of_its_presence_is_refused(settings: Any) -> None:
    settings.A2A_PRESENCE_SECONDS = 0
    with pytest.raises(UnfitManifest, match="A2A_PRESENCE_SECONDS is 0"):
        announce_agents()
    assert not AgentVersion.objects.exists()


def test_no_process_serves_requests_from_an_environment_of_its_own() -> None:
    with pytest.raises(ImproperlyConfigured, match="A2A_ENVIRONMENT is for workers"):
        startup.register()
