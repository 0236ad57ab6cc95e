"""Load harness: this host against its peers, in one run, as ratios. `python -m bench`; see docs/reports/benchmarks.md."""
