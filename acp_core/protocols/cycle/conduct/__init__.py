"""acp as the orchestrator of a cycle: what comes next, the agents' runs, and the process."""
