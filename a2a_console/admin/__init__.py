"""The admin site: lists and pages of every task, context, run and entry of the audit log.

Operators can cancel, repeat and answer tasks, send deliveries again, and switch agents and receivers. API keys,
grants, holds and tenants' days of retention are made here. Members of staff see the rows of their own tenants
(`staff.py`).

The tables may hold millions of rows. Each list is read along an index and counts no further than it has to
(`paging.py`); each page reads bounded slices (`timeline.py`).
"""

from django.apps import apps

from a2a_console.admin.access.api_key_admin import ApiKeyAdmin
from a2a_console.admin.access.audit_admin import AuditEntryAdmin
from a2a_console.admin.access.budget_admin import BudgetAdmin, BudgetUseAdmin
from a2a_console.admin.access.grant_admin import GrantAdmin
from a2a_console.admin.access.privacy_admin import HoldAdmin, TenantRetentionAdmin
from a2a_console.admin.agents.agent_admin import AgentSwitchAdmin
from a2a_console.admin.agents.worker_admin import WorkerAdmin
from a2a_console.admin.tasks.bulk_admin import BulkJobAdmin
from a2a_console.admin.tasks.context_admin import ContextAdmin
from a2a_console.admin.tasks.run_admin import RunAdmin
from a2a_console.admin.tasks.task_admin import TaskAdmin
from a2a_console.admin.tasks.waiting_admin import WaitingAdmin
from a2a_console.admin.webhooks import AttemptAdmin as WebhookAttemptAdmin
from a2a_console.admin.webhooks import ConfigAdmin, DeliveryAdmin, ReceiverAdmin
from a2a_tasks.conf import project

if apps.is_installed("axes"):
    from a2a_console.admin.access import lockout_admin  # noqa: F401 - registers it
if project.A2A_OWN_PROJECT:
    from a2a_console.admin.access import people_admin  # noqa: F401 - registers them

__all__ = [
    "AgentSwitchAdmin",
    "ApiKeyAdmin",
    "AuditEntryAdmin",
    "BudgetAdmin",
    "BudgetUseAdmin",
    "BulkJobAdmin",
    "ConfigAdmin",
    "ContextAdmin",
    "DeliveryAdmin",
    "GrantAdmin",
    "HoldAdmin",
    "ReceiverAdmin",
    "RunAdmin",
    "TaskAdmin",
    "TenantRetentionAdmin",
    "WaitingAdmin",
    "WebhookAttemptAdmin",
    "WorkerAdmin",
]
