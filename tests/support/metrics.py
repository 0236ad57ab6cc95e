"""What this process would tell Prometheus."""

from __future__ import annotations

from collections import Counter

from prometheus_client import REGISTRY

__all__ = ["samples"]


def samples(name: str, **wanted: str) -> Counter[tuple[str, ...]]:
    """The samples of that name that are not 0 and have these labels, by the values of the other labels."""
    return Counter(
        {
            tuple(v for label, v in sample.labels.items() if label not in wanted): sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
            if sample.name == name and sample.value and wanted.items() <= sample.labels.items()
        }
    )
