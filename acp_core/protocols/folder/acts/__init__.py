"""What a person can do in a folder collaboration."""
