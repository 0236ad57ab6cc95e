"""What the fork server of agents' processes has done before it forks one (`tests/support/execution/forked.py`)."""

import django

import tests.support.execution.forked  # noqa: F401 - what each process runs

django.setup()
