"""The subcommands of `manage.py a2a` that are about webhooks: one module each."""
