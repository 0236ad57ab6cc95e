"""The farm: a host's webhooks against 36 kinds of receivers, kills and volume, and an offline checker (docs/decisions/0024).

`python -m lab.farm` says what it can do.
"""
