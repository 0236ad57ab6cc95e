"""An agent of Google's Agent Development Kit."""
