"""The host in other projects."""
