"""What runs for long: turns taken by programs, hooks, and the existing program."""
