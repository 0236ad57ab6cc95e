"""An agent of Strands."""
