#!/usr/bin/env python
"""Django's command line for the host: `python manage.py help`."""

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from a2a_tasks.audit import acting, system


def main() -> None:
    """Run the command that the arguments name, with this project's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as fault:
        sys.exit(f"The environment is wrong. {fault}")
    with acting(lambda: system(" ".join(sys.argv[1:2]))):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
