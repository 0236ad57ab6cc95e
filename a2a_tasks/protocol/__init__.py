"""The A2A protocol as pure values and functions: no framework, no I/O, no clock.

Names are those of A2A 1.0 final. `catalogue` lists the operations, `lifecycle` the states, `errors` the errors,
`dialects` the wire generations, and `jsonrpc`, `rest` and `sse` the envelopes around the same values.
"""
