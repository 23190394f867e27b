"""One person's side of acp: settings, folders, what was seen, what was done, and notices."""
