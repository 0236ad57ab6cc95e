"""Reading and verification of the audit log."""
