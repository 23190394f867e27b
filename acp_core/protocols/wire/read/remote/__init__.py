"""Agents elsewhere: reached by a link or an HTTP address, followed, and remembered."""
