"""What the host can be asked, one module an operation. They decide; bindings translate; the store writes."""
