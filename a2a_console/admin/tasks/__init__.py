"""Tasks, runs, contexts and the inbox in the admin."""
