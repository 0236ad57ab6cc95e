"""The app of the console, for operators and their programs."""

from django.apps import AppConfig


class ConsoleApp(AppConfig):
    """The admin's pages, the management API and the operators' commands, for the tables of the other apps."""

    name = "a2a_console"
    verbose_name = "A2A console"

    def ready(self) -> None:
        """Register the checks."""
        from a2a_console import checks  # noqa: F401, PLC0415 - registers them
