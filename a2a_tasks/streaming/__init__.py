"""Streams of a task's events: `event_buffer` reads new events once per process; `stream` is a reader of the buffer."""
