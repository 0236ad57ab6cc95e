"""Django's PostgreSQL backend, emptied between tests by DELETE.

TRUNCATE makes new files for every table and index, 150 ms a test on a slow disk; the tables of a test hold a few rows.
"""
