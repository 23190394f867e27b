"""The rooms of the house: which there are, who may import whom, and that no imports go in a circle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tests.hygiene.sources import (
    PROTOCOLS,
    ROOT,
    Import,
    files,
    imports_of,
    module_name,
    protocol_names,
)

LEVELS = (
    ("acp_core.model",),
    ("acp_core.files",),
    ("acp_core.person",),
    ("acp_core.agents", "acp_core.rehearsal", "acp_core.stores"),
    ("acp_core.protocols",),
    ("acp_core.history",),
    ("acp_core.loops",),
    ("acp_core.diagnosis",),
    ("acp_core.fleet",),
    ("acp_core.cli",),
    ("acp_tui",),
)
"""From the lowest room to the highest; a room imports from those below it, and from itself."""
ROOMS = {"schema", "state", "read", "rules", "matters", "prompts", "view", "past", "write", "conduct",
         "queries", "acts", "collaboration"}  # fmt: skip
"""What every protocol calls its rooms; it leaves out those that it has no use for."""
OWN_ROOMS = {
    (
        "folder",
        "mirror",
    ): "what a store shows of collaborations that no folder here holds, and what is asked of their hosts",
    ("folder", "rehearsal"): "a collaboration that carries itself out: the product's demo",
    ("folder", "skill"): "the instructions and scripts that agents load",
    ("wire", "bridge"): "a collaboration of any protocol, served as an agent",
    ("wire", "serving"): "an agent over HTTP and on the local network; a relay",
    ("wire", "network"): "connections: links, identities, the client",
}
"""Rooms that one protocol only has, each with the reason."""
UPWARDS: dict[str, str] = {}
"""Rooms that import from above, each with the reason."""
CIRCLES: dict[frozenset[str], str] = {}
"""Circles of imports that are allowed, each with the reason."""


def level_of(module: str) -> int | None:
    """How high the room of a module is; None for what stands at the top of acp_core."""
    for level, rooms in enumerate(LEVELS):
        if any(module == room or module.startswith(f"{room}.") for room in rooms):
            return level
    return None


@cache
def graph() -> dict[str, list[Import]]:
    """Every module of the product with what it imports, late or not, types left out."""
    known = {module_name(path) for path in files()}
    return {
        module_name(path): [
            each for each in imports_of(path) if not each.for_types and each.module in known
        ]
        for path in files()
    }


def test_the_top_of_the_core_is_its_rooms() -> None:
    there = {
        entry.stem
        for entry in (ROOT / "acp_core").iterdir()
        if not entry.name.startswith("_") and entry.suffix in ("", ".py")
    }
    rooms = {room.partition(".")[2] for level in LEVELS for room in level} - {""}
    assert there <= rooms
    assert len(there) <= 14


def test_protocols_have_the_same_rooms() -> None:
    there = {
        (name, entry.stem)
        for name in protocol_names()
        for entry in (PROTOCOLS / name).iterdir()
        if not entry.name.startswith("_") and (any(entry.rglob("*.py")) or entry.suffix == ".py")
    }
    assert {(name, room) for name, room in there if room not in ROOMS} == set(OWN_ROOMS)


def test_imports_point_downwards() -> None:
    assert list(upwards()) == []


def upwards() -> Iterator[str]:
    for module, imported in graph().items():
        here = level_of(module)
        if here is None or any(module.startswith(room) for room in UPWARDS):
            continue
        for each in imported:
            there = level_of(each.module)
            if there is not None and there > here:
                yield f"{module}:{each.line} imports {each.module}"


def test_what_is_let_import_from_above_does() -> None:
    for room in UPWARDS:
        assert any(
            (level_of(each.module) or 0) > (level_of(module) or 0)
            for module, imported in graph().items()
            if module.startswith(room)
            for each in imported
        ), room


def test_no_imports_go_in_a_circle() -> None:
    found = {frozenset(circle) for circle in circles()}
    assert found == set(CIRCLES), [sorted(circle) for circle in found ^ set(CIRCLES)]


def circles() -> list[list[str]]:
    """Modules that import each other, however far round (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    out: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for each in graph()[module]:
            if each.module == module:
                continue
            if each.module not in order:
                visit(each.module)
                lowest[module] = min(lowest[module], lowest[each.module])
            elif each.module in stack:
                lowest[module] = min(lowest[module], order[each.module])
        if lowest[module] == order[module]:
            circle = [stack.pop()]
            while circle[-1] != module:
                circle.append(stack.pop())
            if len(circle) > 1:
                out.append(circle)

    for module in graph():
        if module not in order:
            visit(module)
    return out
