"""The example app `kits`: agents that only conformance kits need. A2A_APPS names it where the kits are run."""

from django.apps import AppConfig


class KitsConfig(AppConfig):
    """The app of the agents; once it is installed, the host finds `agents.py`."""

    name = "examples.kits"
    verbose_name = "Example agents for conformance kits"
