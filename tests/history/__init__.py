"""Recording, replay, metrics and reports."""
