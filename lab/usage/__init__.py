"""The usage ledger against the count of a model server, while workers are killed."""
