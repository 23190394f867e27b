"""What a collaboration is founded on: the part of protocol.json that no event changes.

Source: folder protocol specification, "Required Inputs" and "Files"; dialect v2 adds the
deliverables. Standard library only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import deliverables, list_in, text_in
from acp_core.protocols.folder.schema.deliverables import Declaration, Deliverable
from acp_core.protocols.folder.write import Refused


class Primary(NamedTuple):
    """The primary deliverable of a v2 collaboration, as protocol.json declares it."""

    type: str
    file: str
    checklist: tuple[str, ...] = ()
    mode: str = deliverables.INTERNAL
    folder: str = deliverables.DEFAULT_DIR
    repo_root: str | None = None


class Charter(NamedTuple):
    """Objective, participants and gates; the first participant owns the proposal."""

    objective: str
    participants: tuple[str, ...]
    gates: tuple[str, ...]
    primary: Primary | None = None

    @property
    def dialect(self) -> str:
        """v2 with a deliverable, v1 without."""
        return schema.V2 if self.primary else schema.V1

    @property
    def owner(self) -> str:
        """The participant who owns the proposal."""
        return self.participants[0]

    def declaration(self) -> Declaration:
        """The deliverables, as readers understand the declaration."""
        return deliverables.declare(self._declared())

    def deliverable(self) -> Deliverable | None:
        """The primary deliverable, with its reference and the sections of its type."""
        return self.declaration().primary

    def deliverable_path(self, folder: str) -> str:
        """Where the primary deliverable lies.

        Raises:
            Refused: that is no place below the folder that it must lie in.
        """
        declaration = self.declaration()
        root = deliverables.root_of(declaration, folder)
        primary = declaration.primary
        path = deliverables.path_of(declaration, primary, root) if primary else None
        if path is None:
            raise Refused(root.problem or "the primary deliverable is outside its folder")
        return path

    def generated_gates(self) -> tuple[str, ...]:
        """The gates that v2 adds to those of the objective."""
        primary = self.deliverable()
        if primary is None:
            return ()
        return (
            f"Primary deliverable exists: `{primary.reference}`",
            f"Primary deliverable has required `{primary.type}` sections",
            "Every accepted decision has `Reflected in`",
            "Every accepted decision is reflected in the primary deliverable",
            "Primary deliverable status is `Frozen`",
            "Primary deliverable SHA-256 snapshot recorded",
        )

    def protocol(self) -> dict[str, Any]:
        """protocol.json without what follows from the log (phase, owner, waiting, times)."""
        fields: dict[str, Any] = {
            "objective": self.objective,
            "participants": [{"id": name} for name in self.participants],
            "completionGates": list(self.gates),
        }
        if self.primary is None:
            return fields
        objective = [{"source": "objective", "text": gate} for gate in self.gates]
        generated = [{"source": "generated", "text": gate} for gate in self.generated_gates()]
        return fields | self._declared() | {"completionGates": objective + generated}

    def _declared(self) -> dict[str, Any]:
        primary = self.primary
        if primary is None:
            return {}
        declared: dict[str, Any] = {
            "protocol": "acp",
            "schemaVersion": 2,
            "objectiveGates": list(self.gates),
            "deliverables": {
                "mode": primary.mode,
                "dir": primary.folder,
                "owner": self.owner,
                "coAuthors": [],
                "primary": {
                    "type": primary.type,
                    "file": primary.file,
                    "checklist": list(primary.checklist),
                },
                "supporting": [],
                "attachments": [],
            },
        }
        if primary.repo_root is not None:
            declared["repoRoot"] = primary.repo_root
        return declared


def charter_of(protocol: dict[str, Any]) -> Charter:
    """The charter that a protocol.json stands for.

    Raises:
        Refused: it names no objective, no participant or no gate, or no usable deliverable.
    """
    dialect = schema.dialect_of(protocol)
    if dialect == schema.UNKNOWN_DIALECT:
        raise Refused(f"unknown schemaVersion {protocol['schemaVersion']!r}")
    objective = text_in(protocol, "objective")
    participants = tuple(schema.participant_ids(protocol))
    gates = _objective_gates(protocol)
    if not objective.strip():
        raise Refused("protocol.json objective must not be blank")
    if not participants:
        raise Refused("protocol.json participants must not be empty")
    if not gates:
        raise Refused("protocol.json completionGates must not be empty")
    primary = None
    if dialect == schema.V2:
        declared = deliverables.declare(protocol)
        if declared.primary is None or not declared.primary.reference:
            raise Refused("protocol.json deliverables.primary is required")
        item = declared.primary
        checklist = item.sections if item.type == deliverables.CUSTOM else ()
        primary = Primary(
            item.type, item.file, checklist, declared.mode, declared.dir, declared.repo_root
        )
    return Charter(objective, participants, gates, primary)


def _objective_gates(protocol: dict[str, Any]) -> tuple[str, ...]:
    """The gates that people set: in v2 without the generated ones."""
    named = [gate for gate in list_in(protocol, "objectiveGates") if isinstance(gate, str)]
    if named:
        return tuple(named)
    own = [
        gate
        for gate in list_in(protocol, "completionGates")
        if not (isinstance(gate, dict) and gate.get("source") == "generated")
    ]
    return tuple(schema.gate_texts({"completionGates": own}))
