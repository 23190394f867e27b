"""What came out of a completed run or initiative, as a panel."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.gates import BY_A_HUMAN, MET, gates
from acp_core.protocols.governed.read.initiative import Initiative, Workstream
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import AcceptedTurn, LedgerLine, decode, plain
from acp_core.protocols.governed.view.panels import shown_time

ID = "outcome"
RUN = (ID, "decisions", "objections")
INITIATIVE = (ID, "governance", "decisions")
_GATES = 50  # decisions about gates that are listed
_FILES = 50
_WIDTH = 400  # characters of the list of files


def of_run(run: Run) -> tuple[model.Panel, ...]:
    """The outcome of a completed run: its last result, its gates, what is left open; else nothing."""
    if run.status != "completed":
        return ()
    rows = (
        *_result(run), *_approvals(run), *_left_open(run), *_final_gate(run), *_changed(run),
    )  # fmt: skip
    return (model.Panel(ID, "Outcome", "table", ("item", "outcome"), rows),)


def of_initiative(initiative: Initiative) -> tuple[model.Panel, ...]:
    """The outcome of a completed initiative, workstream by workstream; else nothing."""
    if initiative.status != "completed":
        return ()
    rows = [_workstream(each) for each in initiative.workstreams]
    rows += [
        model.Row(
            (f"gate {barrier.name}", plain(barrier.status), barrier.comment),
            tone=model.Tone.PASS,
        )
        for barrier in initiative.barriers
    ]
    columns = ("workstream", "status", "last accepted result")
    return (model.Panel(ID, "Outcome", "table", columns, tuple(rows)),)


def _result(run: Run) -> Iterator[model.Row]:
    last = next(reversed(run.accepted), AcceptedTurn())
    if last.summary:
        yield model.Row(("Result", last.summary), tone=model.Tone.DONE)
    if last.verification or last.evidence:
        said = ": ".join(filter(None, (last.verification, last.evidence)))
        yield model.Row(("Verification", said))


def _approvals(run: Run) -> Iterator[model.Row]:
    """The gates that a person approved, oldest first."""
    approved = (each for each in run.ledger.lines if each.value.get("type") == "gate_approved")
    for line in list(approved)[-_GATES:]:
        each = decode(LedgerLine, line.value)
        by = f" by {each.who}" if each.who else ""
        at = f", {shown_time(each.at)}" if each.at else ""
        comment = f": {each.comment}" if each.comment else ""
        said = f"{each.gate_id} approved{by}{at}{comment}"
        target = model.Target(document=schema.LEDGER, line=line.number)
        yield model.Row(("Gate", said), tone=model.Tone.PASS, target=target)


def _final_gate(run: Run) -> Iterator[model.Row]:
    """What the gate that ends the last phase demands, as the files are now."""
    for gate in gates(run):
        if not gate.label.endswith(BY_A_HUMAN):
            tone = model.Tone.PASS if gate.met else model.Tone.REVISE
            said = MET[gate.met] + (f": {gate.evidence}" if gate.evidence else "")
            target = model.Target(document=gate.document)
            yield model.Row((gate.label, said), tone=tone, target=target)


def _left_open(run: Run) -> Iterator[model.Row]:
    left = [each for each in run.objections if each.open]
    if not left:
        yield model.Row(("Open objections", "none"))
    for each in left:
        said = f"{each.id}, {each.severity}: {each.statement}"
        yield model.Row(("Open objection", said), tone=model.Tone.REVIEW)


def _changed(run: Run) -> Iterator[model.Row]:
    """The files that accepted turns changed."""
    changed = (each.observed_files or each.files for each in run.accepted)
    files = list(dict.fromkeys(name for each in changed for name in each))
    if files:
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        yield model.Row(("Files", clean_line(", ".join(files[:_FILES]), _WIDTH) + more))


def _workstream(stream: Workstream) -> model.Row:
    last = next(reversed(stream.run.accepted), AcceptedTurn()) if stream.run else AcceptedTurn()
    checked = f" (verification: {last.verification})" if last.verification else ""
    done = stream.status == "completed"
    tone = model.Tone.DONE if done else model.Tone.BLOCKED
    return model.Row((stream.name, plain(stream.status), last.summary + checked), tone=tone)
