"""The commands for agents on the network."""
