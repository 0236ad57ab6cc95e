"""One bad task beside many good ones, and a database that is away again and again: nothing else is lost."""
