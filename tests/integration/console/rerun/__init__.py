"""Tests of the rerun."""
