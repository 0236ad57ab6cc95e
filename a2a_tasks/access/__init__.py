"""Authentication and authorization of callers: one layer for every route of every binding."""
