"""What runs: sub-agents' programs, each watched by a process that outlives whoever dispatched it."""
