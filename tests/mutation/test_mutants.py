"""What mutation testing changes, and what it leaves alone."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.mutation.__main__ import ROOT, sample
from tests.mutation.mutants import mutants

SOURCE = '''
LIMIT = 3


def take(size: int, held: bool) -> int:
    """Say "größer" first."""
    if size > LIMIT and not held:
        raise ValueError(f"größer: {size + 1}")
    print("taken")
    return size


class Sign:
    def __repr__(self) -> str:
        return "a" if 1 == 1 else "b"
'''


def made(tmp_path: Path) -> dict[str, str]:
    """Each change of the source above: what it does, and the changed line."""
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    found = mutants(tmp_path, "a.py")
    texts = {each.kind: each.apply(SOURCE) for each in found}
    assert len(texts) == len(found)
    for text in texts.values():
        ast.parse(text)
    before = SOURCE.splitlines()
    return {
        kind: next(
            new.strip() for old, new in zip(before, text.splitlines(), strict=True) if old != new
        )
        for kind, text in texts.items()
    }


def test_each_kind_of_change_is_made_and_messages_and_constants_stay(tmp_path: Path) -> None:
    assert made(tmp_path) == {
        "guard": "if False:",
        "logic": "if ((size > LIMIT) or (not held)):",
        "compare": "if ((size) >= (LIMIT)) and not held:",
        "not": "if size > LIMIT and bool(held):",
        "call": "pass",
    }


def test_a_sample_is_the_same_for_its_seed_and_every_change_is_python() -> None:
    some = sample(ROOT, 200, 5)
    assert some == sample(ROOT, 200, 5) != sample(ROOT, 200, 6)
    for each in some:
        ast.parse(each.apply((ROOT / each.path).read_text(encoding="utf-8")))
