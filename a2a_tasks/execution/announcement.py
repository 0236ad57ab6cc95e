"""The announcement of agents in an environment of its own, to the processes that do not have their code."""

from __future__ import annotations

import logging
import time

import msgspec

from a2a_tasks.agents import registry
from a2a_tasks.agents.declaration import ENVIRONMENT, FORMAT, Manifest, UnfitManifest, declare, sign
from a2a_tasks.audit import act_as
from a2a_tasks.audit.keys import MIN_LENGTH
from a2a_tasks.conf import conf, project
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import versions
from a2a_tasks.store.db import run_here

__all__ = ["announce_agents", "announce_manifest", "make_manifest"]

logger = logging.getLogger(__name__)
#: Seconds between two tries while the database is away.
AGAIN_SECONDS = 1.0


def make_manifest() -> Manifest:
    """Return the manifest of the agents of this process. Raises UnfitManifest."""
    environment, key = str(conf.ENVIRONMENT), str(conf.ENVIRONMENT_KEY)
    if not ENVIRONMENT.fullmatch(environment):
        raise UnfitManifest(
            "A2A_ENVIRONMENT must name the environment, by 1 to 64 letters, digits, dots, hyphens and underscores"
        )
    if 0 < len(key) < MIN_LENGTH:
        raise UnfitManifest(f"A2A_ENVIRONMENT_KEY must have at least {MIN_LENGTH} characters")
    texts = [msgspec.json.encode(declare(agent)) for agent in registry.list_own()]
    return Manifest(
        format=FORMAT,
        host=project.A2A_HOST_VERSION,
        environment=environment,
        agents=tuple(map(msgspec.Raw, texts)),
        signatures=tuple(sign(key, environment, text) for text in texts),
    )


def announce_manifest(manifest: Manifest) -> list[str]:
    """Store the agents of a manifest, each by itself; return their names. Raises UnfitManifest, Overloaded."""
    signatures = manifest.signatures or ("",) * len(manifest.agents)
    if len(signatures) != len(manifest.agents):
        raise UnfitManifest("the manifest must have one signature for each agent")
    names = []
    for text, signature in zip(manifest.agents, signatures, strict=True):
        made = run_here(
            versions.announce,
            bytes(text),
            environment=manifest.environment,
            host=manifest.host,
            signature=signature,
        )
        names.append(f"{made.slug} {made.version}")
    return names


def announce_agents() -> None:
    """Announce the agents of this worker, before it takes runs; waits while the database is away. Raises UnfitManifest."""
    if not float(conf.PRESENCE_SECONDS):
        raise UnfitManifest(
            "A2A_PRESENCE_SECONDS is 0, so the host would not learn that the agents have a worker"
        )
    manifest = make_manifest()
    with act_as(lambda: f"environment:{manifest.environment}"):
        while True:
            try:
                names = announce_manifest(manifest)
                break
            except Overloaded:  # the store has logged it
                time.sleep(AGAIN_SECONDS)
    logger.info("environment %s: %s", manifest.environment, ", ".join(names) or "no agents")
