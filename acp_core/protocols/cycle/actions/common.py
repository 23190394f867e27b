"""What the acts have in common: the project that they are about, and which of its cycles is meant."""

from __future__ import annotations
