"""What was not recorded, as far as an agent's own log tells it."""
