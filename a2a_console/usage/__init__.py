"""The sums of the usage ledger, for the page, for CSV and for the API."""
