"""The command `a2a-host-worker`: a worker in an environment of its own, which announces its agents to the host.

a2a-host-worker             runs the agents of A2A_APPS; options go to Celery's worker
a2a-host-worker manifest    writes the manifest of the agents
a2a-host-worker COMMAND     any other command of Django, such as `startagent` or `check`
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

__all__ = ["main"]

#: Options of the worker: threads, because runs share one event loop, and no messages between workers.
OPTIONS = ("-P", "threads", "-c", "2", "--without-gossip", "--without-mingle")


def main() -> None:
    """Run the worker, or the command that the arguments name. SystemExit with one line for a mistake."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.worker_settings")
    sys.path.insert(0, str(Path.cwd()))  # the apps of the working directory
    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as fault:
        sys.exit(f"The environment is wrong. {fault}")
    match sys.argv[1:]:
        case ["manifest"]:
            execute_from_command_line([sys.argv[0], "agent_versions", "manifest"])
        case [word, *_] if not word.startswith("-"):
            execute_from_command_line(sys.argv)
        case options:
            if not os.environ.get("A2A_ENVIRONMENT"):
                sys.exit("A2A_ENVIRONMENT is not set. It names the environment of this worker.")
            from a2a_tasks.execution.celery_app import app  # noqa: PLC0415 - it needs the settings

            import_module("a2a_project.celery")
            level = os.environ.get("LOG_LEVEL", "INFO")
            app.worker_main(["worker", *OPTIONS, "-l", level, *options])


if __name__ == "__main__":
    main()
