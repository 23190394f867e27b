"""From what was read to the Snapshot of an agent."""
