"""The host in Django projects of others."""
