"""What a serving process asks of the system."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from a2a_tasks.process import MAX_DESCRIPTORS

ASK = """
import resource
from a2a_tasks import process
process.raise_descriptor_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize("hard", [512, 256])
def test_a_process_takes_as_many_descriptors_as_it_may(hard: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))

    asked = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", ASK], preexec_fn=limit, capture_output=True, check=True, text=True
    )
    assert asked.stdout.split() == [str(hard)] * 2
    assert hard < MAX_DESCRIPTORS
