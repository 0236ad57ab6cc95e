"""What these tests need around them: the same as those of the tasks' API."""

from tests.api.conftest import _unknown

__all__ = ["_unknown"]
