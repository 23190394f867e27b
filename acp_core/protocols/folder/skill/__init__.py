"""The portable skill: what agents load, with scripts that need a bare Python and nothing else."""
