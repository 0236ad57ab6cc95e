"""The statistics of the host."""
