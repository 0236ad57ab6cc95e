"""What the tests of webhooks' back office need around them: the same as those of tasks'."""

from tests.integration.admin.conftest import _static_root, sign_in

__all__ = ["_static_root", "sign_in"]
