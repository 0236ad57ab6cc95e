"""What these tests need around them: the same as those of the tasks' API."""

from tests.integration.api.conftest import _unknown

__all__ = ["_unknown"]
