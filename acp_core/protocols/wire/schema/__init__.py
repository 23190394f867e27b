"""What is in messages, cards, tasks and requests (ACP core specification, v0.8), as types."""
