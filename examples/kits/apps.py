"""The example app `kits`: the agents that conformance kits need beside the demo. A2A_APPS names it where they are run."""

from django.apps import AppConfig


class KitsConfig(AppConfig):
    """Being installed is enough: the host finds `agents.py`."""

    name = "examples.kits"
    verbose_name = "Example agents for conformance kits"
