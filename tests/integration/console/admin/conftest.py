"""What the admin's tests need around them."""

from __future__ import annotations

from tests.support.console.admin.people import sign_in

__all__ = ["sign_in"]
