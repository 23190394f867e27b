"""What a person can do through an agent that runs."""
