"""Every write to a cycle: its state file, its progress folder, its coordination log."""
