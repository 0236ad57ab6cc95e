"""An app with an agent that runs in a process of its own."""
