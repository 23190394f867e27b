"""Reading and writing files that others write too."""
