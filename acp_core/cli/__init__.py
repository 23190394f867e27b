"""`acp` on the command line: what holds for every protocol, one file per group."""
