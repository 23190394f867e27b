"""What a sub-agent returns, found in whatever it said around it.

Source: agent workspaces specification, "Return Value Contract".
"""

from __future__ import annotations

import json
import re

from acp_core.files.records import shallow

_FENCE = re.compile(r"```[A-Za-z]*\s*\n?|```")
_LIMIT = 200  # objects that are tried
_FIRST_LINES = re.compile(r"\A\s*STATUS:[ \t]*(\S+)[^\n]*\n((?:[A-Z_]+:[^\n]*(?:\n|\Z))*)")


def parse(said: str) -> tuple[dict[str, object] | None, bool]:
    """The last object with a ``status`` in ``said``, and whether there is prose around it.

    A code fence around it is no prose. The form ``STATUS: DONE`` with lines of ``KEY: value``
    after it is read too.
    """
    found: dict[str, object] | None = None
    rest = said
    decoder = json.JSONDecoder()
    at = said.find("{")
    for _ in range(_LIMIT):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(said, at)
        except (ValueError, RecursionError):
            at = said.find("{", at + 1)
            continue
        if isinstance(value, dict) and "status" in value and shallow(value):
            found, rest = value, said[:at] + said[end:]
        at = said.find("{", end)
    if found is None:
        return _first_lines(said), False
    return found, bool(_FENCE.sub("", rest).strip())


def _first_lines(said: str) -> dict[str, object] | None:
    match = _FIRST_LINES.match(said)
    if match is None:
        return None
    value: dict[str, object] = {"status": match[1]}
    for line in match[2].splitlines():
        key, _, what = line.partition(":")
        value[key.lower()] = what.strip()
    return value
