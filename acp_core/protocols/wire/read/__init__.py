"""From an agent's folder, or an agent elsewhere, to data."""
