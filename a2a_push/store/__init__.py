"""The only code that writes webhooks. Functions are synchronous, one transaction each; `run_in_thread` runs them.

`configs` is what clients register; `work` takes due webhooks for a process and settles what became of them; `replays` and
`switches` are for operators, `trials` is sending again to what was given up; `past` is retention; `presence` tells whether
there is anything to look for.

Rows are locked in one order: configs, receivers, deliveries, each by their keys.
"""
