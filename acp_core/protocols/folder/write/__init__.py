"""Every write of the folder protocol: appending, starting, repairing and continuing."""
