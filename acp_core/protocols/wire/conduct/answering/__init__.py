"""Answering messages and tasks by running a program: ``acp agent --on-message``."""
