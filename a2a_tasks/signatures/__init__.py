"""Signatures of agent cards (A2A 1.0 §8.4): signed contents, keys, signing and verification. See docs/decisions/0010.

All modules but `ring` are pure: no Django, no I/O, no clock.
"""
