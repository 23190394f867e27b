"""Textual programs that do next to nothing: what measurements of acp stand beside."""
