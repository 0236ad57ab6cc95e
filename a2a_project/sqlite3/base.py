"""The backend: Django's own but for the mode of a new file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from django.db.backends.sqlite3 import base

__all__ = ["DatabaseWrapper"]


class DatabaseWrapper(base.DatabaseWrapper):
    """What `ENGINE: a2a_project.sqlite3` names."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect; a file that is not there is made for its owner alone, and SQLite gives its log the same mode.

        One that is there keeps the mode it has: it may be shared on purpose.
        """
        if not self.is_in_memory_db():
            with suppress(OSError):  # it is there; else what is wrong with it, SQLite says better
                os.close(os.open(conn_params["database"], os.O_CREAT | os.O_EXCL, 0o600))
        return super().get_new_connection(conn_params)
