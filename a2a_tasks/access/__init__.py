"""Who is at the door: one layer for every route of every binding."""
