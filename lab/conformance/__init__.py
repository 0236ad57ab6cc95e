"""The board of conformance: the public kits against one host, as one table (docs/clients.md, "Conformance kits")."""
