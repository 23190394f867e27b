"""Participants' turns for loops, and waiting for a turn."""
