"""The repetition of an ended task as a new task."""
