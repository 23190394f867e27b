"""What an agent keeps: messages, tasks, peers and what still has to go out, in one SQLite file."""
