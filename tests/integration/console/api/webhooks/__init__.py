"""The management API, asked as its clients ask."""
