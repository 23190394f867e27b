"""``acp bridge``: a collaboration in a folder, served as an agent, so that it is seen elsewhere."""
