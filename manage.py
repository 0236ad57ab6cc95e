#!/usr/bin/env python
"""Django's command line for the host: `python manage.py help`."""

from a2a_host.command import manage

if __name__ == "__main__":
    manage("a2a_project.settings")
