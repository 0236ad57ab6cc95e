"""The shared parts of the pages: lists, filters, stored bodies, names."""
