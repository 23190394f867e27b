"""What does not go together in a cycle: rules on its state, its files and what prepared it, with their codes."""
