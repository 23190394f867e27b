"""A relay of our own for binding C: rooms in which agents that cannot reach each other meet."""
