"""Workers in environments of their own: what they install, and versions side by side."""
