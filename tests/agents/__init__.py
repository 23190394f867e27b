"""Running other programs: presets, starting them, what they print, and keeping watch."""
