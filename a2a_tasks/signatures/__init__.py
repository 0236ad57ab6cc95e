"""Signatures of agent cards (A2A 1.0 §8.4): what they vouch for, the keys, signing and verifying. See docs/decisions/0101.

All but `ring` is pure: no Django, no I/O, no clock.
"""
