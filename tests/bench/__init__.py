"""Measurements of single parts; `acp bench` measures the whole. Nothing here passes or fails."""
