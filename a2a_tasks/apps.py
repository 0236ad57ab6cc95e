"""The task store's Django app."""

from django.apps import AppConfig


class TasksConfig(AppConfig):
    """Loads the agents of every installed app and the system checks."""

    name = "a2a_tasks"
    verbose_name = "A2A tasks"

    def ready(self) -> None:
        """Find `agents.py` in every app, as the admin finds `admin.py`; hang up the workers' bell."""
        from a2a_tasks import checks  # noqa: F401, PLC0415 - registers the checks once apps are loaded
        from a2a_tasks.access import checks as _  # noqa: F401, PLC0415 - the same
        from a2a_tasks.access import denials, sign_in_forms, sign_ins  # noqa: PLC0415 - they need the models
        from a2a_tasks.agents import registry  # noqa: PLC0415 - agents import models of their apps
        from a2a_tasks.execution import bell  # noqa: PLC0415 - needs the models
        from a2a_tasks.store import handed, sealed_columns  # noqa: PLC0415 - needs the models

        registry.discover()
        bell.install()
        denials.install()
        sign_ins.install()
        sign_in_forms.install()
        sealed_columns.register(handed.SECRETS)
