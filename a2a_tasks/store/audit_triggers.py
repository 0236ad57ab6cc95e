"""Triggers that refuse changes of the audit log. Retention and erasure bypass them with `unlock`. A migration makes them.

They prevent mistakes, of this code and of people at the database's prompt. The seals show changes by a person who has
the right to drop the triggers (docs/decisions/0020).
"""

from __future__ import annotations

from a2a_tasks.store.backend.server import count_audit_triggers
from a2a_tasks.store.backend.server import unlock_audit as unlock

__all__ = ["TABLES", "are_installed", "unlock"]

TABLES = ("a2a_tasks_auditentry", "a2a_tasks_auditlink", "a2a_tasks_auditseal")


def are_installed() -> bool:
    """Return whether all triggers exist and are enabled."""
    return count_audit_triggers() == 2 * len(TABLES)
