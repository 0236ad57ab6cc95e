"""The agent of an environment of its own, whose code the host does not have."""
