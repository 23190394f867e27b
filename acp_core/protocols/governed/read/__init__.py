"""From files to data: runs, initiatives, the repository, and what was left unfinished."""
