"""Django's PostgreSQL backend, as tests need it."""
