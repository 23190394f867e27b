"""Collaborations that get stuck on purpose, each for another reason, with real loops and programs."""
