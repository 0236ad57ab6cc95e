"""The check of announced versions of agents: a row with a wrong signature, or of a newer host, is not served."""

from __future__ import annotations

import hmac

from a2a_tasks.agents.declaration import UnfitManifest, digest, read_declaration, refuse_newer, sign
from a2a_tasks.conf import conf, may_announce, project, read_environment_keys
from a2a_tasks.models import AgentVersion

__all__ = ["find_fault"]


def find_fault(row: AgentVersion) -> str:
    """Return why an announced version is not served; empty = it is."""
    text = row.declaration.encode(errors="replace")
    if str(conf.ENVIRONMENT_KEYS).strip():
        key = read_environment_keys().get(row.environment, "")
        if not key:
            return f"A2A_ENVIRONMENT_KEYS has no secret of the environment {row.environment}"
        expected = sign(key, row.environment, text)
        if not hmac.compare_digest(expected.encode(), row.signature.encode(errors="replace")):
            return f"its signature is not that of the environment {row.environment}"
    if not may_announce(row.environment, row.slug):
        return f"A2A_ENVIRONMENT_AGENTS does not let the environment {row.environment} announce the agent {row.slug}"
    try:
        refuse_newer(row.host, project.A2A_HOST_VERSION)
        made = read_declaration(text)
    except UnfitManifest as fault:
        return str(fault)
    whole = (made.slug, made.version, digest(text)) == (row.slug, row.version, row.digest)
    return "" if whole else "its row was changed after the announcement"
