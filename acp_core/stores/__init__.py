"""A collaboration that several hosts share: its store is a git remote, or a PostgreSQL database."""
