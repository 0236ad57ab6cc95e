"""The only code that writes webhooks. Functions are synchronous, one transaction each; `run_in_thread` runs them.

`configs` are the webhooks that clients register. `claims` takes due webhooks for a process, `cursor` reads the log for
them, `results` stores attempts. `replays`, `retries` and `switches` are for operators; `retention` deletes; `presence`
knows whether any webhook is active.

Rows are locked in one order: configs, receivers, deliveries, each by their keys.
"""
