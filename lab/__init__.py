"""The laboratory: whole hosts under faults, attacks, load and foreign clients (lab/README.md)."""
