"""A collaboration that carries itself out: scenarios, and processes that play them."""
