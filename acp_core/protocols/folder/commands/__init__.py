"""The commands of folder collaborations."""
