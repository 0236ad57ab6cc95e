"""Access, the audit log and retention in the admin."""
