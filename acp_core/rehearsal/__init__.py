"""Collaborations that carry themselves out, with participants that need no model: `acp demo`."""
