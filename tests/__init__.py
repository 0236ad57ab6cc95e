"""The tests, in tiers: `unit` needs no database, `integration` one, `journeys` whole hosts (docs/testing.md)."""

from pathlib import Path

#: The checkout.
ROOT = Path(__file__).resolve().parents[1]
