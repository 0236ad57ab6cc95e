"""The demo agents."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """The app of the demo agents, for people, tests, conformance kits and load tools."""

    name = "examples.demo"
    label = "demo"
