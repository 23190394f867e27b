"""An agent that runs: what it knows, and what it does with messages, tasks and peers."""
