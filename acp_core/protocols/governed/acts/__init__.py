"""The acts of runs and initiatives: described once in the tables, and bound to what they are about."""
