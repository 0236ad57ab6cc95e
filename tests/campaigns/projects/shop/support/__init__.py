"""The shop's agent."""
