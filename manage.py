#!/usr/bin/env python
"""Django's command line for the host: `python manage.py help`."""

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import DatabaseError, DataError, IntegrityError

from a2a_tasks.audit import act_as, system


def main() -> None:
    """Run the command that the arguments name, with this project's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as fault:
        sys.exit(f"The environment is wrong. {fault}")
    try:
        with act_as(lambda: system(" ".join(sys.argv[1:2]))):
            execute_from_command_line(sys.argv)
    except ImproperlyConfigured as fault:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"The host cannot start. {fault}")
    except DatabaseError as fault:
        # Of rules that were broken by what is written, the trace says more.
        if "--traceback" in sys.argv or isinstance(fault, IntegrityError | DataError):
            raise
        from a2a_tasks.management.database import explain  # noqa: PLC0415 - it needs settings

        sys.exit(explain(fault))


if __name__ == "__main__":
    main()
