"""What the fork server of agents' processes has done before it forks one (`tests/support/execution/forked.py`)."""

import django

import a2a_tasks.execution.child  # noqa: F401 - what each process runs

django.setup()
