"""Old import paths of the project work for one release."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from a2a_project import grpc_process


def test_grpc_in_a_process_is_found_with_a_warning() -> None:
    sys.modules.pop("a2a_project.grpc_server", None)
    with pytest.warns(DeprecationWarning, match=r"is a2a_project\.grpc_process now"):
        old = import_module("a2a_project.grpc_server")
    assert old.serve_in_background is grpc_process.serve_in_background
