"""Whole stories, from the outside."""
