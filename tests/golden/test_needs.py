"""What needs somebody, in every state of every protocol of which there is a golden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"
PROTOCOLS = ("cycle", "folder", "governed", "wire", "workspaces")


def snapshots(value: Any) -> Iterator[dict[str, Any]]:
    """The Snapshots within a golden, wherever a command printed them."""
    if isinstance(value, dict):
        if "needs" in value and "next_actions" in value:
            yield value
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from snapshots(each)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_need_is_said_once(protocol: str) -> None:
    seen = 0
    for path in sorted((DATA / protocol).glob("*.json")):
        for snapshot in snapshots(json.loads(path.read_text(encoding="utf-8"))):
            texts = [need["text"].casefold() for need in snapshot["needs"]]
            assert sorted(set(texts)) == sorted(texts), path.name
            seen += len(texts)
    assert seen


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_file_keeps_its_name_at_the_beginning_of_a_sentence(protocol: str) -> None:
    for path in sorted((DATA / protocol).glob("*.json")):
        for snapshot in snapshots(json.loads(path.read_text(encoding="utf-8"))):
            for said in (*snapshot["needs"], *snapshot["findings"]):
                first = (said.get("text") or said.get("message", "")).split(" ")[0].rstrip(",:;")
                stem, _, ending = first.partition(".")
                named = ending in ("json", "jsonl", "md") and stem.isalpha()
                assert not named or stem.islower() or stem.isupper(), f"{path.name}: {first}"
