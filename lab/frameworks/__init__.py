"""Agents of frameworks whose dependencies exclude each other: each folder has an environment of its own.

`make lab-frameworks` makes the environments, and runs the tests of each. docs/frameworks.md describes the agents.
"""
