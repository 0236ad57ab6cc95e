"""An app with an agent that kills its process, and one that shares the process with it."""
