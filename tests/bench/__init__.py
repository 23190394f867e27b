"""Measurements. Nothing here passes or fails: `python -m tests.bench` prints figures."""
