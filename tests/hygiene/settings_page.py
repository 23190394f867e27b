"""docs/configuration.md: the table of all settings, made from the one that reads them."""

from __future__ import annotations

import re
from dataclasses import fields

from acp_core.person.settings import Settings
from tests.hygiene.sources import ROOT

PAGE = ROOT / "docs" / "configuration.md"
_TABLE = re.compile(r"(<!-- made by [^>]*-->\n)(?:\|.*\n)*")


def page() -> str:
    """The text of the page, with its table made anew."""
    rows = ["| setting | default | what it is for |", "|---|---|---|"]
    usual = Settings()
    for each in fields(Settings):
        value = getattr(usual, each.name)
        default = str(value).lower() if isinstance(value, bool) else ""
        rows.append(f"| `{each.name}` | {default} | {each.metadata['description']} |")
    table = "\n".join(rows)
    return _TABLE.sub(lambda found: f"{found[1]}{table}\n", PAGE.read_text(encoding="utf-8"))
