"""Running other programs: presets, starting, output streams, supervision that outlives us."""
