"""The smoke of the web server: it takes no larger body than the host does, cuts off what drips in, and drains."""

from __future__ import annotations

import pytest

from lab.server import test_slow_requests as slow
from lab.server.test_draining_host import (
    host,
    test_a_stream_ends_as_a_whole_one_and_says_that_the_task_goes_on,
)
from lab.server.test_slow_requests import small

__all__ = [
    "host",
    "small",
    "test_a_stream_ends_as_a_whole_one_and_says_that_the_task_goes_on",
]
#: The host is one process there, which is all these are about.
pytestmark = [pytest.mark.backend("sqlite"), pytest.mark.usefixtures("emptied")]


class TestRequests:
    test_a_body_that_is_too_large_is_refused_as_soon_as_it_is = (
        slow.TestABodyThatIsTooLarge.test_is_refused_as_soon_as_it_is
    )
    test_a_body_that_drips_in_is_cut_off = slow.TestWhatComesTooSlowly.test_a_body_is_cut_off
