"""Tests of the handover."""
