"""An agent of Microsoft's Agent Framework."""
