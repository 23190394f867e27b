"""The commands of `acp cycle`."""
