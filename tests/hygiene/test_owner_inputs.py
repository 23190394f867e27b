"""Every act of every protocol: what names a program, a folder, a permission or a budget is the owner's."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import acp_core
from acp_core.model.action_spec import ActionSpec, Field, Intent
from acp_core.protocols.kit.owner_inputs import is_owners

_TELLING = re.compile(
    r"program|command|preset|model|folder|permission|budget|workdir|path of a program|time limit"
    r"|environment|repositor", re.IGNORECASE,
)  # fmt: skip
_HARMLESS = {
    "repositories", "message", "folders", "conflict", "agent", "participant", "format", "file",
    "exclude", "process", "doc", "again",
}  # fmt: skip
"""Inputs whose description speaks of such things, and which name none: participants, documents."""


def specs() -> Iterator[ActionSpec]:
    """Every act that is described anywhere."""
    seen: set[int] = set()
    for module in pkgutil.walk_packages(acp_core.__path__, "acp_core."):
        if "__main__" in module.name or "table" not in module.name.rpartition(".")[2]:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, ActionSpec) and id(value) not in seen:
                seen.add(id(value))
                yield value


def speaks_of_programs(field: Field) -> bool:
    return bool(_TELLING.search(f"{field.name} {field.title} {field.help}"))


def test_what_names_a_program_or_how_it_runs_is_the_owners() -> None:
    found = list(specs())
    assert len(found) > 50
    open_ones = {
        f"{spec.name}: {field.name}"
        for spec in found
        if spec.bind and spec.intent is not Intent.CREATE and not spec.personal and not spec.owner
        for field in spec.fields
        if field.form and not is_owners(field) and speaks_of_programs(field)
        and field.name not in _HARMLESS
    }  # fmt: skip
    assert open_ones == set()
