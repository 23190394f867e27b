"""Live sessions: programs that are driven turn by turn by the Agent Client Protocol."""
