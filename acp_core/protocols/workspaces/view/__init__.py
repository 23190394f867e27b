"""From what was read to the Snapshot of a run."""
