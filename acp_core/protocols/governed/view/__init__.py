"""Runs and initiatives in the words that every screen and command knows."""
