"""Metrics of requests for `/metrics`, and the spans of traces (OpenTelemetry).

A failure here never affects a request or a run. See docs/decisions/0032.
"""
