"""Binding D: the agent's HTTP interface, with events as they happen (SSE)."""
