"""Metrics, traces (OpenTelemetry), the context of log lines, and redaction.

A failure here never affects a request or a run. See docs/decisions/0032, 0033 and 0035.
"""
