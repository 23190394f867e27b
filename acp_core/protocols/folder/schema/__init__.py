"""What is in the files of a folder collaboration, as types (`records`), and how its documents are read."""
