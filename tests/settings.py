"""The project's settings, on the backend of this run (see `tests/backend.py`)."""

import functools
import os

import redis.utils

from tests import backend

backend.prepare(os.environ)
os.environ.setdefault("A2A_DISABLED_AGENTS", "bare,strict")
os.environ.setdefault("A2A_APPS", "examples.demo,examples.tables")  # also if the host is installed

from a2a_project.settings import *  # noqa: E402, F403 - they read the environment made above
from a2a_project.settings import DATABASES, INSTALLED_APPS  # noqa: E402

INSTALLED_APPS.append("examples.kits")
# The test database has the name of the real one (both are this run's own), so that child processes, which read the
# same environment, see the same rows. On SQLite it is a file: threads with connections of their own share it.
DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Durability is tested by killing processes, not the machine: no test waits for a disk.
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] |= {
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF",
        # its lock is not fair, and tests have a dozen writers: a host has one
        "timeout": 120,
    }
if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    DATABASES["default"]["ENGINE"] = "tests.postgres"
    DATABASES["default"].setdefault("OPTIONS", {})["options"] = (
        # no statement of a test is so large that to compile it pays, though tables without statistics make it look so
        "-c synchronous_commit=off -c jit=off"
    )
# Every client of a test makes the middleware anew: it looks for a static file when one is asked for, not for all of them.
WHITENOISE_AUTOREFRESH = True
# Each new connection asks for the version of the library, which searches all installed packages: most tests make one.
redis.utils.get_lib_version = functools.cache(redis.utils.get_lib_version)
