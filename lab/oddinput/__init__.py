"""One odd or big input at each door of the host: what it costs the server, compared with as many plain letters."""
