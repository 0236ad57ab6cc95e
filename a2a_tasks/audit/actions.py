"""THE TABLE of actions: all requested changes of the host's state, and all refusals.

Changes that an agent makes to its task are not here: they are in the task's own log. To add an action: a row here, and
one call of `store.audit.note` in the transaction that performs it.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["HOST_WIDE", "Action"]


class Action(StrEnum):
    """An action by its name; the text describes the action and the object of its entry."""

    about: str

    def __new__(cls, name: str, about: str) -> Action:
        """One row of the table."""
        row = str.__new__(cls, name)
        row._value_ = name
        row.about = about
        return row

    TASK_SEND = "task.send", "a message was accepted: the task it began or went to"
    TASK_ANSWER = "task.answer", "an operator answered a task that waits: the task"
    TASK_ASSIGN = "task.assign", "a task that waits was assigned to a user: the task"
    TASK_RELEASE = "task.release", "the assignment of a task that waits was removed: the task"
    SECRET_ASKED = "secret.asked", "an agent asked to be handed secrets: the task"
    SECRET_LINK = "secret.link", "an operator made a new link to hand secrets over: the task"
    SECRET_HANDED = "secret.handed", "secrets were handed over by a link: the task"
    TASK_RUN_AGAIN = (
        "task.run_again",
        "an operator ran an ended task again: that task; the detail names the new one",
    )
    BULK_BEGIN = (
        "bulk.begin",
        "an action on many tasks was begun: the job; the detail has the filters",
    )
    BULK_STOP = "bulk.stop", "an action on many tasks was stopped: the job"
    VIEW_SAVE = "view.save", "a user saved or removed a view of a list: its name"
    TASK_EXPORT = (
        "task.export",
        "a list of tasks was exported: the owner by whom it was filtered; the detail has the other filters",
    )
    TASK_CANCEL = "task.cancel", "a task was cancelled: the task"
    TASK_PURGE = "task.purge", "retention removed a task and its data: the task"
    LOG_PURGE = "log.purge", "retention removed events of ended tasks: nothing; the detail counts"
    WEBHOOK_CREATE = "webhook.create", "a webhook was registered: its task"
    WEBHOOK_REPLACE = "webhook.replace", "a webhook was replaced by one of the same id: its task"
    WEBHOOK_DELETE = "webhook.delete", "a webhook was removed: its task"
    WEBHOOK_ENABLE = "webhook.enable", "a disabled webhook was enabled: its task"
    WEBHOOK_DISABLE = (
        "webhook.disable",
        "a webhook was disabled, because its receiver answered 410: its task",
    )
    WEBHOOK_REPLAY = (
        "webhook.replay",
        "deliveries were replayed, or made due at once: the webhook-id",
    )
    RECEIVER_ENABLE = "receiver.enable", "a receiver was enabled: its number"
    RECEIVER_DISABLE = "receiver.disable", "a receiver was disabled: its number"
    RECEIVER_TEST = "receiver.test", "a test event was sent to a receiver: its number"
    SECRETS_RESEAL = "secrets.reseal", "stored secrets were sealed anew: nothing; the detail counts"
    KEY_CREATE = "key.create", "an API key was made: its prefix"
    KEY_ROTATE = "key.rotate", "an API key got a new secret: its prefix"
    KEY_CHANGE = (
        "key.change",
        "name, scopes, rate limit or end of an API key were changed: its prefix",
    )
    KEY_REVOKE = "key.revoke", "an API key was revoked: its prefix"
    GRANT_ADD = "grant.add", "a right to an agent was granted: the grantee"
    GRANT_REMOVE = "grant.remove", "a right to an agent was removed: the grantee"
    AGENT_ENABLE = "agent.enable", "an agent was switched on: its slug"
    AGENT_DISABLE = "agent.disable", "an agent was switched off: its slug"
    AGENT_DRAIN = "agent.drain", "an agent was set to take no new tasks: its slug"
    AGENT_LIMIT = "agent.limit", "the limit of concurrent runs of an agent was set: its slug"
    AGENT_QUEUE = "agent.queue", "the queue of an agent was set: its slug"
    AGENT_ANNOUNCE = "agent.announce", "an environment announced an agent: its slug"
    ANNOUNCEMENT_REFUSED = (
        "announcement.refused",
        "the announcement of an agent was refused: its slug",
    )
    AGENT_VERSION = (
        "agent.version",
        "the version of an agent that serves, or its canary, was set: its slug",
    )
    AGENT_FORGET = "agent.forget", "an announced version of an agent was removed: its slug"
    AGENT_MOVE = (
        "agent.move",
        "the conversations of one version of an agent were moved to another: its slug",
    )
    BUDGET_CREATE = "budget.create", "a budget was made: its name"
    BUDGET_CHANGE = "budget.change", "a budget was changed: its name"
    BUDGET_DELETE = "budget.delete", "a budget was deleted: its name"
    BUDGET_ALLOW = (
        "budget.allow",
        "an operator allowed more than the limit of a budget: its name",
    )
    BUDGET_REFUSE = "budget.refuse", "an operator allowed no more of a budget: its name"
    CARD_KEYS_CHANGE = "card_keys.change", "the file of keys that sign cards was written: its name"
    USER_CREATE = "user.create", "a Django user was made: `user:<number>`"
    USER_CHANGE = "user.change", "a Django user was changed: `user:<number>`"
    USER_DELETE = "user.delete", "a Django user was deleted: `user:<number>`"
    GROUP_CREATE = "group.create", "a group of Django users was made: its number"
    GROUP_CHANGE = "group.change", "a group of Django users was changed: its number"
    GROUP_DELETE = "group.delete", "a group of Django users was deleted: its number"
    LOGIN = "login.done", "a user signed in to the pages: `user:<number>`"
    LOGOUT = "login.ended", "a user signed out: `user:<number>`"
    LOGIN_FAILED = "login.failed", "a sign-in failed: `user:<number>`, if there is such a user"
    ACCESS_REFUSED = (
        "access.refused",
        "credentials were missing or wrong (401): the principal of wrong credentials, if it is known",
    )
    ACCESS_DENIED = "access.denied", "an identified caller was refused (403): nothing"
    AUDIT_PURGE = (
        "audit.purge",
        "the oldest entries of this log were removed: the last one's number",
    )
    AUDIT_EXPORT = "audit.export", "this log was exported: nothing"
    PRIVACY_EXPORT = "privacy.export", "a principal's data was exported: the principal"
    PRIVACY_ERASE = "privacy.erase", "a principal's data was erased: its name since then"
    RETENTION_SET = (
        "retention.set",
        "a tenant's days of retention were set or taken away: the tenant",
    )
    HOLD_SET = "hold.set", "a legal hold was laid: what is held"
    HOLD_RELEASE = "hold.release", "a legal hold was released: what was held"


#: Actions of the whole host, which have no tenant even where there are tenants: only staff with all tenants see them.
HOST_WIDE = frozenset(
    {
        *(Action.LOG_PURGE, Action.SECRETS_RESEAL, Action.CARD_KEYS_CHANGE),
        *(Action.AGENT_ENABLE, Action.AGENT_DISABLE, Action.AGENT_DRAIN),
        *(Action.AGENT_LIMIT, Action.AGENT_QUEUE, Action.AGENT_VERSION, Action.AGENT_MOVE),
        *(Action.AGENT_ANNOUNCE, Action.ANNOUNCEMENT_REFUSED, Action.AGENT_FORGET),
        *(Action.BUDGET_CREATE, Action.BUDGET_CHANGE, Action.BUDGET_DELETE),
        *(Action.BUDGET_ALLOW, Action.BUDGET_REFUSE),
        *(Action.GRANT_ADD, Action.GRANT_REMOVE, Action.HOLD_SET, Action.HOLD_RELEASE),
        *(Action.USER_CREATE, Action.USER_CHANGE, Action.USER_DELETE),
        *(Action.GROUP_CREATE, Action.GROUP_CHANGE, Action.GROUP_DELETE),
        *(Action.LOGIN, Action.LOGOUT, Action.LOGIN_FAILED, Action.ACCESS_REFUSED),
        *(Action.AUDIT_PURGE, Action.AUDIT_EXPORT, Action.PRIVACY_EXPORT, Action.PRIVACY_ERASE),
    }
)
