"""ACP v0.8: agents that talk to each other over the network."""
