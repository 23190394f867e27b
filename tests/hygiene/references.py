"""The pages of docs that are made from the program: commands, keys, codes, settings, and the manual page.

`python -m tests.hygiene.references` writes them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests.hygiene import codes_page, commands_page, keys_page, man_page, settings_page

PAGES: dict[Path, Callable[[], str]] = {
    codes_page.PAGE: codes_page.page,
    commands_page.PAGE: commands_page.page,
    keys_page.PAGE: keys_page.page,
    man_page.PAGE: man_page.page,
    settings_page.PAGE: settings_page.page,
}
"""Each page with what makes its text."""


if __name__ == "__main__":
    sys.argv = ["acp"]  # help names the program by it
    for path, made in PAGES.items():
        path.write_text(made(), encoding="utf-8")
