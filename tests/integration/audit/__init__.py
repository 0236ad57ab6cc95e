"""Tests of the audit log: the chain, the table of actions, and that everything leaves an entry."""
