"""The application of the tests of servers, as a child process."""

from __future__ import annotations

import os
import sys

from tests.support.printing_process import Process

__all__ = ["ServedApp"]


class ServedApp(Process):
    """`lab.server.apps` with these settings, accepting when the constructor returns."""

    def __init__(self, *options: str, **settings: str) -> None:
        command = [sys.executable, "-m", "lab.server.apps", *options]
        env = {**os.environ, "DJANGO_SETTINGS_MODULE": "a2a_project.settings", **settings}
        super().__init__(*command, env=env)
        self.port = int(self.line("listening on").split()[-1])
