"""An app with agents that log, print and fail."""
