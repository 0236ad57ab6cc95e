"""Tests of the queue."""
