"""The commands that hold for every protocol, described: by the headings of `acp --help`."""
