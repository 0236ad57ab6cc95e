"""Django's SQLite backend, whose files are their owner's alone: they hold what people said, and hashes of passwords."""
