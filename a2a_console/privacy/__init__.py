"""Export and erasure of one principal's data."""
