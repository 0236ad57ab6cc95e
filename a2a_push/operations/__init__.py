"""The operations of webhooks, and webhooks that come with a message."""
