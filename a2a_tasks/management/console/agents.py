"""List agents, and switch them: enable, disable, drain, limit, queue.

agents                               what there is, how it does, what it has to do
agents drain demo --reason "deploy"  no new tasks; what there is goes on
agents disable demo                  to clients there is no such agent
agents enable demo
agents limit demo 3                  at most so many runs under way on the whole host; "none" = any number
agents queue demo night              where its runs wait; "own" = as its class says
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.admin.agent_admin import Standing, standings
from a2a_tasks.agents import registry
from a2a_tasks.store import switches
from a2a_tasks.store.figures import in_words
from a2a_tasks.store.switches import SwitchState

__all__ = ["add_arguments", "handle"]

STATES = {
    "enable": SwitchState.ON,
    "drain": SwitchState.DRAINING,
    "disable": SwitchState.OFF,
}


def add_arguments(parser: ArgumentParser) -> None:
    """What to do, and with which agent."""
    parser.add_argument(
        "do", nargs="?", default="list", choices=("list", *STATES, "limit", "queue")
    )
    parser.add_argument("slug", nargs="?", default="", help="the agent")
    parser.add_argument("value", nargs="?", default="", help="the limit, or the queue")
    parser.add_argument("--reason", default="", help="for the audit log, and who looks later")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Do it."""
    if options["do"] == "list":
        for standing in standings():
            if options["slug"] in ("", standing.agent.slug):
                command.stdout.write(_line(standing))
        return
    if registry.hosted(options["slug"]) is None:
        raise CommandError(
            f"There is no agent {options['slug']!r}. There are: {', '.join(registry.slugs())}"
        )
    try:
        changed = _set(options)
    except ValueError as fault:
        raise CommandError(str(fault)) from None
    command.stdout.write("Done." if changed else "It was so already.")


def _set(options: dict[str, Any]) -> bool:
    """Raises ValueError for what cannot be set."""
    do, slug, value, reason = (options[name] for name in ("do", "slug", "value", "reason"))
    if do in STATES:
        return switches.set_state(slug, STATES[do], reason)
    if not value:
        raise ValueError("Which limit? A number, or none." if do == "limit" else "Which queue?")
    if do == "queue":
        return switches.move(slug, "" if value == "own" else value, reason)
    if value != "none" and not value.isdecimal():
        raise ValueError("A limit is a number, or none.")
    return switches.limit(slug, None if value == "none" else int(value), reason)


def _line(one: Standing) -> str:
    most = "" if one.switch.max_running is None else f" of {one.switch.max_running}"
    words = [one.agent.slug, one.state, one.agent.version, f"queue {one.queue}"]
    words += [f"workers {len(one.workers)}", f"running {one.load.running}{most}"]
    words += [f"queued {one.load.queued}", f"last hour {one.health.ended} ended"]
    words += [f"{one.health.failed} failed"]
    words += [] if one.health.p95 is None else [f"p95 {in_words(one.health.p95, 's')}"]
    return "  ".join([*words, one.switch.reason] if one.switch.reason else words)
