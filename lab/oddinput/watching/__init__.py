"""Tells how long any thread of this process held the interpreter, as a Django app."""
