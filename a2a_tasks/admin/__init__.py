"""The back office: every task, context and run can be looked at; a task can be cancelled; nothing
can be edited but API keys and grants. Members of staff see the tenants they are for (`staff.py`).

The tables may hold millions of rows. Each list is read along an index and counts no further than it has to
(`paging.py`); each page reads bounded slices (`timeline.py`).
"""

from a2a_tasks.admin.api_key_admin import ApiKeyAdmin
from a2a_tasks.admin.context_admin import ContextAdmin
from a2a_tasks.admin.grant_admin import GrantAdmin
from a2a_tasks.admin.lockout_admin import AttemptAdmin
from a2a_tasks.admin.people_admin import GroupsOfSuperusers, UsersOfSuperusers
from a2a_tasks.admin.run_admin import RunAdmin
from a2a_tasks.admin.task_admin import TaskAdmin

__all__ = [
    "ApiKeyAdmin",
    "AttemptAdmin",
    "ContextAdmin",
    "GrantAdmin",
    "GroupsOfSuperusers",
    "RunAdmin",
    "TaskAdmin",
    "UsersOfSuperusers",
]
