"""What runs for long: an agent, and the program that answers for it."""
