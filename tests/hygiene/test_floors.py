"""The rooms of a protocol are floors: each imports only those before it, late or not, by name or by string."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.hygiene.sources import ROOT, files, imports_of, inside, module_name, protocol_names, tree

FLOORS = ("schema", "state", "network", "read", "rules", "matters", "prompts", "view", "past", "hooks",
          "write", "conduct", "serving", "bridge", "queries", "acts", "skill", "mirror", "rehearsal",
          "collaboration")  # fmt: skip
"""From the lowest to the highest; a protocol leaves out those that it has no use for."""
UPWARDS: dict[tuple[str, str, str], str] = {}
"""Protocol, room, and the room above that it imports all the same, each with what must go first."""


def room_of(module: str, protocol: str) -> str | None:
    """The room of a protocol's module; None for the protocol's face, and for what is not the protocol's."""
    base = f"acp_core.protocols.{protocol}"
    return (
        module.removeprefix(f"{base}.").partition(".")[0]
        if inside(module, base) and module != base
        else None
    )


def upwards(protocol: str) -> Iterator[tuple[str, str, str]]:
    """The file and line, the room, and the room above it, of each import that points upwards."""
    base = f"acp_core.protocols.{protocol}"
    spelled = re.compile(rf"({re.escape(base)}[\w.]*):\w+")
    for path in files("acp_core"):
        here = room_of(module_name(path), protocol)
        if here is None:
            continue
        imported = {(each.module, each.line) for each in imports_of(path)}
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                imported |= {(name, node.lineno) for name in spelled.findall(node.value)}
        for module, line in sorted(imported):
            there = room_of(module, protocol)
            if there and FLOORS.index(there) > FLOORS.index(here):
                yield f"{path.relative_to(ROOT)}:{line}", here, there


@pytest.mark.parametrize("protocol", protocol_names())
def test_rooms_import_only_those_below_them(protocol: str) -> None:
    allowed = {(here, there) for name, here, there in UPWARDS if name == protocol}
    found = list(upwards(protocol))
    assert [each for each in found if each[1:] not in allowed] == []
    assert allowed == {each[1:] for each in found}, "no longer needed"


@pytest.mark.parametrize("protocol", protocol_names())
def test_the_face_of_a_room_holds_no_code(protocol: str) -> None:
    faces = [
        path for path in files("acp_core")
        if path.name == "__init__.py" and room_of(module_name(path), protocol)
    ]  # fmt: skip
    holding = [
        str(path.relative_to(ROOT))
        for path in faces
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    assert holding == []
