"""What a person can do in a run."""
