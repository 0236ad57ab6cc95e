"""The table of frameworks tells what makes an agent, and what to install."""

from __future__ import annotations

from a2a_frameworks.table import FRAMEWORKS
from a2a_tasks.agents.frameworks import find_install_line


def test_a_framework_that_is_missing_is_named_by_the_line_that_installs_it() -> None:
    for package in (
        "strands",
        "google.adk",
        "google",
    ):  # of google.adk, imports name the first part
        assert find_install_line(package).startswith("pip install '")
    assert find_install_line("django") == ""


class Agent:
    """A class with the name of an agent, in a package that is no framework."""


def test_a_class_elsewhere_with_the_name_of_an_agent_is_none() -> None:
    Agent.__module__ = "strands_of_others.agent"
    assert not any(row.makes(Agent()) for row in FRAMEWORKS)
    Agent.__module__ = "strands.agent.agent"
    assert [row.package for row in FRAMEWORKS if row.makes(Agent())] == ["strands"]
