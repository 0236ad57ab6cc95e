"""The seam between the store and its database: the statements for PostgreSQL, and the same functions by the ORM."""
