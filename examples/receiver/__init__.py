"""A small receiver of webhooks, to be run beside a host and to be copied from: see README.md."""
