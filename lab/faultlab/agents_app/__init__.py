"""Agents of the fault lab, as a Django app."""
