"""Load harness: this host against its peers, in one run, as ratios. `python -m bench`; see bench/README.md."""
