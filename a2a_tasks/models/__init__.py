"""The tables: columns, constraints, indexes; no behaviour.

Only the store writes them; `access` writes API keys and grants.
"""

from a2a_tasks.models.agent_switch import AgentSwitch, SwitchState
from a2a_tasks.models.agent_version import AgentVersion
from a2a_tasks.models.api_key import ApiKey
from a2a_tasks.models.assignment import Assignment, Waiting
from a2a_tasks.models.audit import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.models.budget import (
    Budget,
    BudgetAction,
    BudgetHold,
    BudgetShare,
    BudgetUnit,
    BudgetUse,
    BudgetWindow,
)
from a2a_tasks.models.bulk_job import BulkJob, BulkResult, BulkState
from a2a_tasks.models.cancel_notice import CancelNotice
from a2a_tasks.models.chat_prefix import ChatPrefix
from a2a_tasks.models.context import Context
from a2a_tasks.models.conversation import ConversationItem, ConversationList, ConversationMemory
from a2a_tasks.models.delegation import AskPolicy, Delegation, EndPolicy
from a2a_tasks.models.event import Event
from a2a_tasks.models.grant import ALL, Grant, GrantRight
from a2a_tasks.models.handed_secret import HandedSecret
from a2a_tasks.models.idempotency import Idempotency
from a2a_tasks.models.privacy import Hold, HoldKind, TenantRetention
from a2a_tasks.models.run import (
    BEHIND,
    IS_BEHIND,
    IS_PARKED,
    PARKED,
    WAITS_FOR_SLOT,
    WAITS_FOR_TASKS,
    Run,
    RunStatus,
)
from a2a_tasks.models.run_line import RunLine
from a2a_tasks.models.saved_view import SavedView
from a2a_tasks.models.step import Step
from a2a_tasks.models.stored_file import StoredFile
from a2a_tasks.models.task import LONG_COLUMNS, Artifact, Message, Tally, Task
from a2a_tasks.models.usage import Usage
from a2a_tasks.models.worker import Worker, WorkerKind

__all__ = [
    "ALL",
    "LONG_COLUMNS",
    "AgentSwitch",
    "AgentVersion",
    "ApiKey",
    "Artifact",
    "AskPolicy",
    "Assignment",
    "AuditEntry",
    "AuditLink",
    "AuditSeal",
    "Budget",
    "BudgetAction",
    "BudgetHold",
    "BudgetShare",
    "BudgetUnit",
    "BudgetUse",
    "BudgetWindow",
    "BulkJob",
    "BulkResult",
    "BulkState",
    "ChatPrefix",
    "Context",
    "CancelNotice",
    "Delegation",
    "EndPolicy",
    "ConversationItem",
    "ConversationList",
    "ConversationMemory",
    "Event",
    "Grant",
    "HandedSecret",
    "HoldKind",
    "Hold",
    "BEHIND",
    "IS_BEHIND",
    "IS_PARKED",
    "Idempotency",
    "GrantRight",
    "Message",
    "PARKED",
    "Run",
    "RunLine",
    "RunStatus",
    "SavedView",
    "Step",
    "StoredFile",
    "SwitchState",
    "Tally",
    "Task",
    "TenantRetention",
    "Usage",
    "Worker",
    "WorkerKind",
    "WAITS_FOR_SLOT",
    "WAITS_FOR_TASKS",
    "Waiting",
]
