"""What participants are told: the next action in one line, and the prompt for a whole turn."""
