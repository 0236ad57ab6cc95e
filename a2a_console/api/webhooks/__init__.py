"""Webhooks in the management API (`/api/v1/webhooks/`): configs, deliveries, receivers. No answer has secrets."""
