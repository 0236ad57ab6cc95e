"""The app of the console, for operators and their programs."""

from django.apps import AppConfig


class ConsoleApp(AppConfig):
    """The admin's pages, the management API and the operators' commands, for the tables of the other apps."""

    name = "a2a_console"
    verbose_name = "A2A console"

    def ready(self) -> None:
        """Register the checks, and the work on bulk jobs."""
        from a2a_console import checks  # noqa: F401, PLC0415 - registers them
        from a2a_console.bulk.jobs import is_due, work  # noqa: PLC0415 - it needs the models
        from a2a_tasks.execution.housekeeping import DUTIES  # noqa: PLC0415 - as above

        DUTIES.append((is_due, work))
