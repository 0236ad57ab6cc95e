"""The hooks and fixtures of all tests are a plugin (`tests/plugin.py`), which the laboratory loads, too."""

pytest_plugins = ["tests.plugin"]
