"""What people do with the host, in a real browser, against real processes of this backend."""
