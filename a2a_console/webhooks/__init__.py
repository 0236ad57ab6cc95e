"""Facts about webhooks and receivers that pages and API both show."""
