"""What mutation testing changes, and what it leaves alone."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.__main__ import ROOT, copied, named, sample
from tests.mutation.mutants import mutants, undefended
from tests.mutation.patching import Loaded, Unpatchable
from tests.mutation.places import UNDEFENDED
from tests.mutation.trials import fresh

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


@pytest.mark.slow
def test_a_sample_is_the_same_for_its_seed_and_every_change_is_python() -> None:
    some = sample(ROOT, 200, 5)
    assert some == sample(ROOT, 200, 5) != sample(ROOT, 200, 6)
    for each in some:
        ast.parse(each.apply((ROOT / each.path).read_text(encoding="utf-8")))


def test_a_run_begins_with_every_guard_that_was_undefended_once() -> None:
    guards = undefended(ROOT)
    assert sample(ROOT, 1, 5)[: len(guards)] == guards
    assert named(ROOT, [guards[-1].name]) == [guards[-1]]
    for guard in guards:
        assert guard.text != guard.was
        file, _, test = guard.test.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(ROOT, tmp_path_factory.mktemp("project") / "copy")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(UNDEFENDED)))
def test_every_guard_that_was_undefended_once_is_defended(copy: Path, number: int) -> None:
    guard = undefended(copy)[number]
    assert fresh(copy, None, [guard.test], 600.0)
    assert not fresh(copy, guard, [guard.test], 600.0), guard.name


def loaded(tmp_path: Path) -> ModuleType:
    """The source above and a closure, loaded as a module."""
    path = tmp_path / "loaded.py"
    path.write_text(SOURCE + CLOSURE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("loaded", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLOSURE = """

def counter(start: int):
    def count(step: int) -> int:
        return start + step * 2
    return count


COUNT = counter(1)
"""


@pytest.mark.slow
def test_changes_are_found_by_their_names_in_the_order_that_is_asked_for() -> None:
    one, two, *_ = mutants(ROOT, "acp_core/files/atomic.py")
    assert named(ROOT, [two.name, one.name]) == [two, one]
    for name in (f"{one.name}0", "acp_core/files/none.py:1:guard:0"):
        with pytest.raises(SystemExit, match="no such change: acp_core/files/"):
            named(ROOT, [one.name, name])


def test_a_change_reaches_functions_that_are_loaded_already(tmp_path: Path) -> None:
    module = loaded(tmp_path)
    source, functions = SOURCE + CLOSURE, Loaded()
    changes = {each.kind: each.apply(source) for each in mutants(tmp_path, "loaded.py")}
    with pytest.raises(ValueError, match="größer"):
        module.take(4, False)
    functions.change(str(tmp_path / "loaded.py"), source, changes["guard"])
    assert module.take(4, False) == 4
    assert module.COUNT(3) == 7  # made before the change
    functions.change(str(tmp_path / "loaded.py"), source, changes["number"])
    assert module.COUNT(3) == module.counter(1)(3) == 10


@pytest.mark.slow
def test_a_change_of_what_is_not_loaded_is_refused(tmp_path: Path) -> None:
    loaded(tmp_path)
    functions = Loaded()
    with pytest.raises(Unpatchable):
        functions.change(
            str(tmp_path / "other.py"), SOURCE, SOURCE.replace("size > LIMIT", "False")
        )
    without = CLOSURE.replace("start + step * 2", "step * 2")  # needs no closure any more
    with pytest.raises(Unpatchable):
        functions.change(str(tmp_path / "loaded.py"), SOURCE + CLOSURE, SOURCE + without)
