"""Widgets, one per file: they take what they show by reactives and say what was done by messages."""
