"""Tells a person that something needs them: what to say, when, and in which ways."""
