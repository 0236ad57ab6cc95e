"""What clients ask about webhooks, and webhooks that come with a message."""
