"""The pictures of every screen: what stands on them, and their digests.

The digests tell of colours and styles, too; another version of Textual or Rich changes them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "screenshots"
TEMPORARY = "/tmp"  # its path stands on some pictures
_CELL = (12.2, 24.4)  # the width and height of a sign in a picture
_TEXT = "{http://www.w3.org/2000/svg}text"


def names() -> list[str]:
    """A golden for each screen."""
    screens = {path.name.split("-")[0] for path in PICTURES.glob("*.svg")}
    return [f"pictures/{screen}.txt" for screen in sorted(screens)]


def text(name: str) -> str:
    """The pictures of a screen, made anew."""
    with tempfile.TemporaryDirectory(prefix="acp-golden-") as place:
        words = [name.removeprefix("pictures/").removesuffix(".txt"), "-o", f"{place}/made"]
        subprocess.run(
            [sys.executable, str(PICTURES / "make.py"), *words],
            env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": TEMPORARY},
            stdin=subprocess.DEVNULL, capture_output=True, check=True,
        )  # fmt: skip
        return described(sorted(Path(place, "made").iterdir()))


def described(pictures: list[Path]) -> str:
    """Name and digest of each picture, with its text where that is another than before."""
    told: list[str] = []
    for picture in pictures:
        content = picture.read_bytes()
        told.append(f"# {picture.name} {hashlib.sha256(content).hexdigest()}")
        lines = _lines(content)
        told.append(lines if lines not in told else "# the same text as above")
    return "\n".join(told) + "\n"


def _lines(content: bytes) -> str:
    """What stands in a picture's cells."""
    rows: dict[int, str] = {}
    for each in ElementTree.fromstring(content).iter(_TEXT):
        if "clip-path" not in each.attrib:  # the title of the window
            continue
        row, column = (int(float(each.attrib[axis]) / _CELL[n]) for axis, n in (("y", 1), ("x", 0)))
        rows[row] = rows.get(row, "").ljust(column) + (each.text or "").replace("\xa0", " ")
    return "\n".join(rows.get(row, "").rstrip() for row in range(max(rows) + 1))
