"""Makes the pictures of the cards: every decision of every protocol, as the tests make it.

    python screenshots/cards.py                       # all of them, into cards/
    python screenshots/cards.py -o DIR --everywhere   # in every theme and size, somewhere else
    python screenshots/cards.py folder cycle          # only these protocols

The tests that make a decision on a card open it in the real dashboard, on a real collaboration; a
picture is taken of each card that they open (see `tests/tui/cards.py`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = {
    "folder": ("tests/protocols/folder/test_cards.py",),
    "governed": ("tests/tui/test_card.py", "tests/protocols/governed/test_initiative_cards.py"),
    "cycle": ("tests/protocols/cycle/test_cards.py",),
    "workspaces": ("tests/protocols/workspaces/test_cards.py",),
    "wire": ("tests/protocols/wire/test_cards.py",),
}


def main() -> int:
    """Make the pictures that were asked for; the exit code of the tests."""
    parser = argparse.ArgumentParser(description="Make the pictures of the cards.")
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(TESTS)}")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "screenshots" / "cards")
    parser.add_argument("--everywhere", action="store_true", help="in every theme and size")
    given = parser.parse_args()
    unknown = sorted(set(given.protocols) - set(TESTS))
    if unknown:
        parser.error(f"no protocol {', '.join(unknown)}; there are: {', '.join(TESTS)}")
    ended = 0
    for protocol in given.protocols or TESTS:
        output = given.output.absolute() / protocol
        output.mkdir(parents=True, exist_ok=True)
        asked = {"ACP_PICTURES": str(output), "ACP_PICTURES_EVERYWHERE": str(int(given.everywhere))}
        command = [sys.executable, "-m", "pytest", "-q", *TESTS[protocol]]
        ended |= subprocess.run(command, cwd=ROOT, env=os.environ | asked, check=False).returncode
    return ended


if __name__ == "__main__":
    sys.exit(main())
