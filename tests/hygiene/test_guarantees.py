"""Each promise of docs/guarantees.md names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(tests/[^`\s]+|::test_[^`\s]+)`")


def test_every_test_that_a_promise_names_is_there() -> None:
    file, missing = "", []
    for named in NAMED.findall((ROOT / "docs/guarantees.md").read_text(encoding="utf-8")):
        path, _, name = named.partition("::")
        file = path or file
        place = ROOT / file
        if not place.exists() or (name and not re.search(rf"def {name}\b", place.read_text())):
            missing.append(named)
    assert missing == []
