"""Diagnosis: the reasons why a task or a webhook does not continue."""
