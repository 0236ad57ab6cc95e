"""Load harness: this host against its peers, in one run, as ratios. `python -m lab.bench`; see lab/bench/README.md."""
