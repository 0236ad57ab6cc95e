"""`manage.py serve --processes N`: several processes of one port, each of which is replaced when it dies."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.campaigns.server.client import text
from tests.support.execution.waiting import eventually
from tests.support.processes import Child, python

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.backend("stack"), pytest.mark.django_db(transaction=True)]
SERVE = ["-m", "django", "serve", "--port", "0", "--processes", "2", "--server", "uvicorn"]


@pytest.fixture
def served() -> Iterator[Child]:
    """Two processes that serve."""
    with python(SERVE, {"A2A_ANONYMOUS": "1"}) as child:
        child.wait_for("web.1    | Serving on", 120)
        child.wait_for("web.2    | Serving on", 120)
        yield child


def test_all_accept_on_the_port_that_is_said_and_end_together(served: Child) -> None:
    port = int(re.findall(r"Serving on http://127.0.0.1:(\d+)/ with 2 processes", served.log)[0])
    for _ in range(20):
        assert "demo" in text(port, "/agents/demo/.well-known/agent-card.json").lower()
    assert served.stop(30) == 0


def test_one_that_dies_is_replaced(served: Child) -> None:
    (first,) = re.findall(r"web.1 .*started as process (\d+)", served.log)
    os.kill(int(first), signal.SIGKILL)
    eventually(lambda: len(re.findall(r"web.1 .*Serving on", served.log)) > 1, 60)
    assert served.stop(30) == 0
