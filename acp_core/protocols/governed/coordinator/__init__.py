"""Coordinator initiatives in the specification's layout: what a human does with several runs.

Source: governed protocol specification, "Coordinator initiative". Standard library only, but for
`actions`.
"""

from __future__ import annotations
