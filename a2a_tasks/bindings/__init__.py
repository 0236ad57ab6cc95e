"""HTTP in, HTTP out. Bindings translate; each makes one call into the table it was handed."""
