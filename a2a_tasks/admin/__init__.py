"""The back office: every task, context, run and entry of the audit log can be looked at; a task can be cancelled;
nothing can be edited but API keys, grants, holds and tenants' days of retention. Members of staff see the tenants they
are for (`staff.py`).

The tables may hold millions of rows. Each list is read along an index and counts no further than it has to
(`paging.py`); each page reads bounded slices (`timeline.py`).
"""

from a2a_tasks.admin.agent_admin import AgentSwitchAdmin
from a2a_tasks.admin.api_key_admin import ApiKeyAdmin
from a2a_tasks.admin.audit_admin import AuditEntryAdmin
from a2a_tasks.admin.context_admin import ContextAdmin
from a2a_tasks.admin.grant_admin import GrantAdmin
from a2a_tasks.admin.lockout_admin import AttemptAdmin
from a2a_tasks.admin.people_admin import GroupsOfSuperusers, UsersOfSuperusers
from a2a_tasks.admin.privacy_admin import HoldAdmin, TenantRetentionAdmin
from a2a_tasks.admin.run_admin import RunAdmin
from a2a_tasks.admin.task_admin import TaskAdmin
from a2a_tasks.admin.waiting_admin import WaitingAdmin
from a2a_tasks.admin.worker_admin import WorkerAdmin

__all__ = [
    "AgentSwitchAdmin",
    "ApiKeyAdmin",
    "AttemptAdmin",
    "AuditEntryAdmin",
    "ContextAdmin",
    "GrantAdmin",
    "GroupsOfSuperusers",
    "HoldAdmin",
    "RunAdmin",
    "TaskAdmin",
    "TenantRetentionAdmin",
    "UsersOfSuperusers",
    "WorkerAdmin",
    "WaitingAdmin",
]
