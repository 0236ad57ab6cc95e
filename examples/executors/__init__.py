"""Executors of the a2a-sdk, hosted unchanged: `A2A_APPS=examples.demo,examples.executors make run`."""
