"""A real Prometheus looks at a real host: the panels of the dashboards show something, and each fault raises its alert."""
