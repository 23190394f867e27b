"""What stands, as pure functions of what was read: damage, half-done writes, gates, and what follows from the log."""
