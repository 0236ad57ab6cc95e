"""The search of tasks by filters, words and marks, in the order of primary keys."""
