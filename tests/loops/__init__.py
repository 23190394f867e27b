"""Loops: participants whose turns are taken by programs, as real processes."""
