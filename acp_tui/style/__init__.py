"""The choice of a theme, and the colours of states in all of them."""
