"""The Django app of the task store."""

from django.apps import AppConfig


class TasksConfig(AppConfig):
    """The Django app: at start it loads the agents of every installed app and the system checks."""

    name = "a2a_tasks"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "A2A tasks"

    def ready(self) -> None:
        """Find `agents.py` in every app, as the admin finds `admin.py`, and install the signal handlers."""
        from a2a_tasks import checks  # noqa: F401, PLC0415 - registers the checks once apps are loaded
        from a2a_tasks.access import auth_failures, auth_signals, sign_in_forms, switch_cache  # noqa: PLC0415 - they need the models
        from a2a_tasks.access import checks as _  # noqa: F401, PLC0415 - for the same reason
        from a2a_tasks.agents import registry  # noqa: PLC0415 - agents import models of their apps
        from a2a_tasks.execution import calls, wake_up  # noqa: PLC0415 - needs the models
        from a2a_tasks.operations.agent_calls import OperatedCalls  # noqa: PLC0415 - needs the models
        from a2a_tasks.store import delegations, handed_secrets, hooks, sealed_columns  # noqa: PLC0415 - needs the models

        registry.discover()
        wake_up.install()
        calls.register(OperatedCalls())
        hooks.register(delegations.DelegationHooks())
        auth_failures.install()
        auth_signals.install()
        sign_in_forms.install()
        switch_cache.install()
        sealed_columns.register(handed_secrets.SECRETS)
