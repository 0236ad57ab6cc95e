"""The old import path of `a2a_project.grpc_process`, for one release."""

from __future__ import annotations

import warnings

from a2a_project.grpc_process import serve, serve_in_background

__all__ = ["serve", "serve_in_background"]

warnings.warn(f"{__name__} is a2a_project.grpc_process now", DeprecationWarning, stacklevel=2)
