"""What pages may do in a browser: all of them are visited."""
