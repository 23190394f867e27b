"""The deliverables of a dialect v2 collaboration: what is declared, where it lies, what is in it.

Source: the folder protocol's dialect v2 (``protocol.json.deliverables``). A path that a
file names is data: it is resolved only inside its root, never outside. Standard library only.
"""

from __future__ import annotations

import os
import re

from acp_core.files import markdown
from acp_core.files.markdown import Lines
from acp_core.model.light import Any, NamedTuple
from acp_core.protocols.folder.schema.records import list_in, object_in, text_in

INTERNAL, EXTERNAL = "internal", "external"
DEFAULT_DIR = "deliverables"
CUSTOM = "custom"
MAX_DELIVERABLES = 100  # of each kind that are looked at
SECTIONS = {
    "adr": (
        "Status",
        "Context",
        "Decision",
        "Alternatives Considered",
        "Consequences",
        "Follow-ups",
    ),
    "design-spec": (
        "Problem",
        "Goals",
        "Non-goals",
        "Proposed Design",
        "Interfaces / Contracts",
        "Failure Modes",
        "Validation Plan",
        "Open Questions",
    ),
    "implementation-plan": (
        "Scope",
        "Phases",
        "Tasks",
        "Dependencies",
        "Rollout / Migration",
        "Tests",
        "Risks",
        "Exit Criteria",
    ),
    "decision-memo": (
        "Question",
        "Recommendation",
        "Options",
        "Tradeoffs",
        "Decision",
        "Next Action",
    ),
    "review-report": (
        "Scope",
        "Findings",
        "Risks",
        "Required Changes",
        "Open Questions",
        "Recommendation",
    ),
    "test-plan": (
        "Scope",
        "Test Matrix",
        "Fixtures",
        "Automation",
        "Manual Tests",
        "Exit Criteria",
    ),
}
TYPES = (*SECTIONS, CUSTOM)
STATUSES = ("Draft", "In Review", "Frozen")


class Deliverable(NamedTuple):
    """A declared file. Fields of a wrong type are "" or empty; the rules say so.

    ``role`` is ``primary``, ``supporting`` or ``attachment``; ``sections`` are the headings
    that its type asks for; ``reference`` is how documents and events name it, "" where the
    declaration is of no use; ``frozen`` is what protocol.json says of a supporting one.
    """

    role: str
    type: str
    file: str
    sections: tuple[str, ...]
    reference: str
    frozen: bool = False


class Declaration(NamedTuple):
    """``protocol.json.deliverables`` as far as it makes sense."""

    mode: str
    dir: str
    repo_root: str | None
    primary: Deliverable | None
    supporting: tuple[Deliverable, ...]
    attachments: tuple[Deliverable, ...]

    @property
    def all(self) -> tuple[Deliverable, ...]:
        """Every declared file that has a reference."""
        listed = (self.primary, *self.supporting, *self.attachments)
        return tuple(item for item in listed if item is not None and item.reference)

    @property
    def reference(self) -> str:
        """The primary deliverable's reference, "" where there is none."""
        return self.primary.reference if self.primary else ""


def declare(protocol: dict[str, Any]) -> Declaration:
    """What protocol.json declares."""
    block = object_in(protocol, "deliverables")
    mode = block.get("mode", INTERNAL)
    mode = mode if mode in (INTERNAL, EXTERNAL) else INTERNAL
    folder = text_in(block, "dir") if "dir" in block else DEFAULT_DIR
    root = protocol.get("repoRoot")

    def listed(name: str, role: str) -> tuple[Deliverable, ...]:
        items = list_in(block, name)[:MAX_DELIVERABLES]
        return tuple(
            _deliverable(item, role, mode, folder) for item in items if isinstance(item, dict)
        )

    primary = block.get("primary")
    return Declaration(
        mode=mode,
        dir=folder,
        repo_root=root if isinstance(root, str) else None,
        primary=_deliverable(primary, "primary", mode, folder)
        if isinstance(primary, dict)
        else None,
        supporting=listed("supporting", "supporting"),
        attachments=listed("attachments", "attachment"),
    )


def _deliverable(item: dict[str, Any], role: str, mode: str, folder: str) -> Deliverable:
    kind, file = text_in(item, "type"), text_in(item, "file")
    asked = tuple(
        text
        for text in list_in(item, "checklist")[:MAX_DELIVERABLES]
        if isinstance(text, str) and text.strip()
    )
    return Deliverable(
        role=role,
        type=kind,
        file=file,
        sections=asked if kind == CUSTOM else SECTIONS.get(kind, ()),
        reference=reference(mode, folder, file) if is_inside(file) else "",
        frozen=item.get("frozen") is True,
    )


def reference(mode: str, folder: str, file: str) -> str:
    """How documents and events name a deliverable: ``deliverables/x.md``, or ``external:x.md``."""
    if mode == EXTERNAL:
        return f"external:{file}"
    return f"{folder.strip('/')}/{file}" if folder.strip("/.") else file


def is_inside(path: str) -> bool:
    """Whether a path is relative, names something and never goes up."""
    parts = path.replace("\\", "/").split("/")
    return bool(path.strip()) and not os.path.isabs(path) and ".." not in parts and "\0" not in path


class Root(NamedTuple):
    """The folder below which all deliverables lie; ``path`` is None where there is none.

    ``problem`` is the whole message.
    """

    path: str | None
    problem: str = ""


def root_of(declaration: Declaration, folder: str) -> Root:
    """Find the root: the collaboration's folder, or for external deliverables the repoRoot."""
    here = os.path.realpath(folder)
    if declaration.mode == INTERNAL:
        return Root(here)
    given = declaration.repo_root
    if not given or os.path.isabs(given) or "\0" in given:
        return Root(None)  # the rules about protocol.json's own form say why
    try:
        found = os.path.realpath(os.path.join(folder, given))
    except ValueError:  # half a surrogate pair
        found = ""
    if not os.path.isdir(found):
        return Root(None, "repoRoot must resolve to an existing directory")
    if found == os.path.dirname(found):
        return Root(None, "repoRoot must not resolve to filesystem root")
    if os.path.commonpath((found, here)) != found:
        return Root(None, "collaboration folder must be inside repoRoot")
    return Root(found)


def path_of(declaration: Declaration, deliverable: Deliverable, root: Root) -> str | None:
    """Where a deliverable lies, or None where that is not a place below the root."""
    if root.path is None or not deliverable.reference:
        return None
    if declaration.dir and not is_inside(declaration.dir):
        return None
    path = os.path.normpath(os.path.join(root.path, declaration.dir, deliverable.file))
    try:
        real = os.path.realpath(path)
    except ValueError:  # a NUL or a lone surrogate: no file can be called so
        return None
    return path if real.startswith(os.path.join(root.path, "")) else None


class Content(NamedTuple):
    """What a deliverable's text says.

    ``status`` is the declared one ("" where there is no such line); ``sections`` maps each
    heading of level 2 to its line; ``empty`` are those with nothing below; ``other_levels``
    are headings of other levels, for near misses.
    """

    status: str
    sections: dict[str, int]
    empty: frozenset[str]
    other_levels: dict[str, int]
    status_line: int | None


_STATUS = re.compile(rf"^Status:[^\S\n]*({'|'.join(STATUSES)})[^\S\n]*$", re.MULTILINE)


def scan(text: str) -> Content:
    """Read a deliverable's text, which has "\\n" as its only line end."""
    match = _STATUS.search(text)
    parts = tuple(markdown.sections(text, 2))
    return Content(
        status=match.group(1) if match else "",
        sections={part.title: part.line for part in parts},
        empty=frozenset(part.title for part in parts if not part.body.strip()),
        other_levels={h.title: h.line for h in markdown.headings(text) if h.level != 2},
        status_line=Lines(text).at(match.start()) if match else None,
    )
