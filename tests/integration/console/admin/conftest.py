"""What the admin's tests need around them."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from tests.support.console.admin.people import sign_in

__all__ = ["sign_in"]


@pytest.fixture(autouse=True, scope="session")
def _static_root() -> None:
    """Make the directory of collected files, which whitenoise warns of if it is missing."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
