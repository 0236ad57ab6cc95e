"""A hundred thousand rows in every table: what each page and each route of the API then reads."""
