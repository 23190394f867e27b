"""What `acp governed` reads and says: where a run stands, and what of a staged result is sound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from acp_core.model import Snapshot
from acp_core.model.action_spec import Answer
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed.read.run import MET, Objection, detect
from acp_core.protocols.governed.write import turns
from acp_core.protocols.governed.write.opened import read_unlocked
from acp_core.protocols.governed.write.turns import Judged
from acp_core.protocols.kit.values import Values


def status(values: Values) -> Answer:
    """Where a run stands."""
    from acp_core.protocols.governed.view.reader import Reader  # only this query needs it

    if not detect(values.folder):
        raise Refused(f"no governed run in {values.folder}")
    reader = Reader(str(Path(values.folder).absolute()))
    snapshot = reader.refresh(utc_now())
    objections = [each for each in reader.run.objections if each.open] if reader.run else []
    data = {
        "verb": "status",
        "folder": values.folder,
        "phase": snapshot.phase,
        "status": reader.status,
        "headline": snapshot.headline,
        "waiting": [{"participant": t.participant, "what": t.what} for t in snapshot.turns],
        "gates": [
            {"condition": g.label, "met": g.met, "evidence": g.evidence} for g in snapshot.gates
        ],
        "objections": [
            {
                "id": o.id,
                "severity": o.severity,
                "statement": o.statement,
                "status": o.status,
                "by": o.raised_by,
            }
            for o in objections
        ],
        "needs": [n.sentence for n in snapshot.needs],
        "findings": [
            {"code": f.code, "severity": f.severity.value, "message": f.message}
            for f in snapshot.findings
        ],
    }
    return Answer(data, tuple(_status_lines(snapshot, objections)))


def _status_lines(snapshot: Snapshot, objections: list[Objection]) -> Iterator[str]:
    yield f"{snapshot.name}: {snapshot.headline}"
    for gate in snapshot.gates:
        yield f"  {MET[gate.met]}: {gate.label}" + (f" ({gate.evidence})" if gate.evidence else "")
    for each in objections:
        yield f"  objection {each.id} ({each.severity}, {each.status}) of {each.raised_by}: {each.statement}"
    for finding in snapshot.findings:
        yield f"  {finding.severity.value}: {finding.message}"


def check(values: Values) -> Answer:
    """Whether a staged result would be accepted, and what is proposed where not."""
    judged = turns.judge(read_unlocked(values.folder), values.turn or None)
    verdict = judged.verdict
    data = {
        "verb": "check",
        "folder": values.folder,
        "turn_id": judged.turn["turn_id"],
        "ok": verdict.ok,
        "stage": verdict.stage or None,
        "errors": verdict.errors,
        "warnings": verdict.warnings,
        "corrections": [each._asdict() for each in verdict.corrections],
        "observed": judged.observed.files,
    }
    return Answer(data, tuple(_verdict_lines(judged)), 0 if verdict.ok else 1)


def _verdict_lines(judged: Judged) -> Iterator[str]:
    verdict = judged.verdict
    yield f"{judged.turn['turn_id']}: {'valid' if verdict.ok else f'fails at {verdict.stage}'}"
    for error in verdict.errors:
        yield f"  error: {error}"
    if said := turns.hint(verdict):
        yield f" {said}"
    for warning in verdict.warnings:
        yield f"  warning: {warning}"
    for each in verdict.corrections:
        yield f"  proposed: set {each.field} to {each.value!r} ({each.reason})"
