"""The core: no terminal needed."""
