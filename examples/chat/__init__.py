"""A chat without a framework: see the examples in docs/agents.md."""
