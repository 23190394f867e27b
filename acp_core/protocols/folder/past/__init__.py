"""What was not recorded, as far as the files tell it, and which files a recording tracks."""
