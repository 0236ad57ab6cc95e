"""The operations of the host, one per module. They make the decisions; bindings translate; the store writes."""
