"""What the makefile does in more than a line."""
