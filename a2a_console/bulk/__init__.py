"""Actions on many tasks at once, for pages, API and commands."""
