"""The headless half of acp: read, validate, write and run collaborations, without a terminal."""

__version__ = "0.1.0"
