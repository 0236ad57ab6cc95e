"""The example app `tables`: an agent that answers questions about CSV files."""

from django.apps import AppConfig


class TablesConfig(AppConfig):
    """Being installed is enough: the host finds `agents.py`."""

    name = "examples.tables"
    verbose_name = "Example agent: tables"
