"""The subcommands of `manage.py a2a`: one module each, found by its name (`management/commands/a2a.py`)."""
