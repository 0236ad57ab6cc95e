"""The tables: columns, constraints, indexes; no behaviour. Only the store writes them, and `access` API keys and grants."""

from a2a_tasks.models.api_key import ApiKey
from a2a_tasks.models.audit import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.models.context import Context
from a2a_tasks.models.event import Event
from a2a_tasks.models.grant import ALL, Grant, Right
from a2a_tasks.models.idempotency import Idempotency
from a2a_tasks.models.privacy import Held, Hold, TenantRetention
from a2a_tasks.models.run import Run, RunStatus
from a2a_tasks.models.step import Step
from a2a_tasks.models.stored_file import StoredFile
from a2a_tasks.models.task import Artifact, Message, Tally, Task

__all__ = [
    "ALL",
    "ApiKey",
    "Artifact",
    "AuditEntry",
    "AuditLink",
    "AuditSeal",
    "Context",
    "Event",
    "Grant",
    "Held",
    "Hold",
    "Idempotency",
    "Right",
    "Message",
    "Run",
    "RunStatus",
    "Step",
    "StoredFile",
    "Tally",
    "Task",
    "TenantRetention",
]
