"""From a project's folder to data: cycles, progress, the board, what was seen before."""
