"""Every rule about deliverables speaks where it should, in known words, and nowhere else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from acp_core.protocols.folder.rules.checks import validate
from tests.golden.builders.folder import PRIMARY
from tests.protocols.folder.damage import (
    Damage,
    both,
    change,
    check,
    declared,
    event,
    more,
    names,
    primary,
    remove,
    supporting,
    swap,
    write,
)
from tests.protocols.folder.support import make_v2

REPORT = "Status: Frozen\n" + "".join(
    f"## {name}\n\nx\n"
    for name in (
        "Scope",
        "Findings",
        "Risks",
        "Required Changes",
        "Open Questions",
        "Recommendation",
    )
)
FREEZE = event(
    "reader",
    "deliverable_frozen",
    doc="deliverables/notes.md",
    role="supporting",
    sha256=hashlib.sha256(REPORT.encode()).hexdigest(),
)
MEMO = "# Decision\n\nStatus: Draft\n\n" + "\n\n".join(
    f"## {name}"
    for name in ("Question", "Recommendation", "Options", "Tradeoffs", "Decision", "Next Action")
)
DECIDED = "### D1. Initial deliverable declaration"

V2: list[tuple[str, str, Damage, str]] = [
    ("ACP130", "reviewing", change(protocol="other"), "protocol.json protocol must be 'acp'"),
    ("ACP132", "reviewing", change(completionGates=["a"]), "completionGates[1] must include source and text"),
    ("ACP132", "reviewing", change(completionGates=[{"source": "rumour", "text": "a"}]), "completionGates[1] must include source and text"),
    ("ACP133", "drafting", declared(mode="elsewhere"), "deliverables.mode must be internal or external"),
    ("ACP134", "drafting", declared(mode="external"), "repoRoot is required for external deliverables"),
    ("ACP135", "drafting", both(declared(mode="external"), change(repoRoot="/tmp")), "repoRoot must be relative"),
    ("ACP136", "drafting", both(declared(mode="external"), change(repoRoot="nowhere")), "repoRoot must resolve to an existing directory"),
    ("ACP136", "drafting", both(declared(mode="external"), change(repoRoot="../" * 60)), "repoRoot must not resolve to filesystem root"),
    ("ACP136", "drafting", both(declared(mode="external"), lambda f: (f / "in").mkdir(), change(repoRoot="in")), "collaboration folder must be inside repoRoot"),
    ("ACP137", "drafting", change(repoRoot=".."), "repoRoot is not allowed for internal deliverables"),
    ("ACP138", "drafting", declared(dir=""), "deliverables.dir is required"),
    ("ACP139", "drafting", declared(dir="../out"), "deliverables.dir must be relative and must not contain .."),
    ("ACP140", "drafting", declared(primary=None), "protocol.json deliverables.primary is required"),
    ("ACP141", "drafting", primary(type="custom"), "custom primary deliverable requires checklist"),
    ("ACP142", "drafting", primary(type="poem"), "primary deliverable type is invalid"),
    ("ACP142", "drafting", supporting(REPORT, type="poem"), "supporting deliverable type is invalid"),
    ("ACP143", "drafting", primary(file="decision.txt"), "primary deliverable file must be Markdown"),
    ("ACP143", "drafting", supporting(None, file="notes"), "supporting deliverable file must be Markdown"),
    ("ACP144", "drafting", primary(file="../decision.md"), "primary deliverable file must be relative and must not contain .."),
    ("ACP144", "drafting", supporting(None, file="/notes.md"), "supporting deliverable file must be relative and must not contain .."),
    ("ACP144", "drafting", declared(attachments=[{"file": "../x"}]), "attachment file must be relative and must not contain .."),
    ("ACP145", "drafting", supporting(REPORT, {"type": "adr", "file": "notes.md"}), "supporting deliverable files must be unique"),
    ("ACP146", "drafting", supporting(None, file="decision.md"), "supporting deliverable must not reuse the primary deliverable file"),
    ("ACP147", "drafting", declared(attachments=["x"]), "attachments must be objects"),
    ("ACP148", "drafting", declared(attachments=[{}]), "attachment file is required"),
    ("ACP149", "drafting", declared(supporting=[{"type": "adr", "file": f"{n}.md"} for n in range(101)]), "more than 100 supporting deliverables"),
    ("ACP409", "drafting", event("server", "proposal_submitted"), "seq 2: proposal_submitted requires prior primary deliverable_drafted"),
    ("ACP410", "readiness_check", event("server", "readiness_passed"), "seq 11: readiness_passed requires primary deliverable_frozen"),
    ("ACP959", "reviewing", write(PRIMARY, MEMO), f"{PRIMARY} was drafted but all its sections are empty"),
    ("ACP411", "passed", event("server", "deliverable_revised", doc=PRIMARY, role="primary"), "seq 13: deliverable_revised is not allowed after deliverable_frozen"),
    ("ACP412", "passed", event("server", "deliverable_frozen", doc=PRIMARY, role="primary", sha256="0"), "seq 13: primary deliverable can be frozen only once"),
    ("ACP501", "drafting", event("server", "deliverable_drafted", doc=PRIMARY), "seq 2: deliverable events require role"),
    ("ACP502", "drafting", event("server", "deliverable_drafted", role="primary"), "seq 2: deliverable events require doc"),
    ("ACP503", "readiness_check", event("server", "deliverable_frozen", doc=PRIMARY, role="primary"), "seq 11: deliverable_frozen requires sha256"),
    ("ACP503", "readiness_check", event("server", "deliverable_frozen", doc=PRIMARY, role="primary", sha256="A" * 64), "seq 11: deliverable_frozen requires sha256"),
    ("ACP503", "readiness_check", event("server", "deliverable_frozen", doc=PRIMARY, role="primary", sha256="0" * 63), "seq 11: deliverable_frozen requires sha256"),
    ("ACP504", "passed", more(PRIMARY, "changed\n"), "seq 11: deliverable_frozen sha256 does not match current file"),
    ("ACP505", "drafting", event("server", "deliverable_drafted", doc="x.md", role="primary"), "seq 2: doc must reference the primary deliverable"),
    ("ACP506", "drafting", event("server", "deliverable_drafted", doc="x.md", role="supporting"), "seq 2: doc must reference a declared supporting deliverable"),
    ("ACP507", "passed", remove(PRIMARY), "seq 11: deliverable_frozen doc does not exist"),
    ("ACP510", "drafting", remove(PRIMARY), f"primary deliverable missing: {PRIMARY}"),
    ("ACP511", "drafting", swap(PRIMARY, "Status: Draft\n", ""), "primary deliverable must include Status: Draft, In Review, or Frozen"),
    ("ACP513", "drafting", swap(PRIMARY, "## Options", "## Choices"), "primary deliverable missing required section: Options"),
    ("ACP510", "reviewing", remove(PRIMARY), f"primary deliverable missing: {PRIMARY}"),
    ("ACP510", "drafting", supporting(None), "supporting deliverable missing: deliverables/notes.md"),
    ("ACP511", "reviewing", swap(PRIMARY, "Status: Draft\n", ""), "primary deliverable must include Status: Draft, In Review, or Frozen"),
    ("ACP511", "drafting", supporting(REPORT.replace("Status: Frozen", "")), "supporting deliverable deliverables/notes.md must include Status"),
    ("ACP512", "passed", swap(PRIMARY, "Status: Frozen", "Status: Draft"), "primary deliverable status must be Frozen"),
    ("ACP512", "drafting", supporting(REPORT.replace("Frozen", "Draft"), frozen=True), "supporting deliverable deliverables/notes.md status must be Frozen"),
    ("ACP513", "reviewing", swap(PRIMARY, "## Options", "## Choices"), "primary deliverable missing required section: Options"),
    ("ACP513", "drafting", supporting(REPORT.replace("## Risks", "## Dangers")), "supporting deliverable deliverables/notes.md missing required section: Risks"),
    ("ACP514", "passed", swap(PRIMARY, "About options.", ""), "primary deliverable section must not be empty when frozen: Options"),
    ("ACP514", "drafting", supporting(REPORT.replace("## Risks\n\nx", "## Risks"), frozen=True), "supporting deliverable deliverables/notes.md section must not be empty when frozen: Risks"),
    ("ACP515", "reviewing", write(PRIMARY, b"\xff"), f"{PRIMARY} cannot be read: not UTF-8 at byte 1"),
    ("ACP521", "drafting", supporting(REPORT, frozen=True), "supporting deliverable requires deliverable_frozen: deliverables/notes.md"),
    ("ACP522", "drafting", both(supporting(REPORT), FREEZE), "supporting deliverable has freeze event but is not marked frozen: deliverables/notes.md"),
    ("ACP523", "drafting", declared(attachments=[{"file": "data.csv"}]), "attachment missing: data.csv"),
    ("ACP530", "drafting", swap("decisions.md", DECIDED, "### Initial"), "accepted decision headings must use D<number>"),
    ("ACP531", "drafting", swap("decisions.md", "- Decision:", "- Choice:"), "accepted decision D1 requires Decision"),
    ("ACP532", "drafting", swap("decisions.md", f"{DECIDED}\n\n- Decision: write a memo.\n- Rationale: it is short.\n- Reflected in: `{PRIMARY}`", "### Initial\n- Decision: x"), "accepted decision Initial requires Reflected in"),
    ("ACP532", "drafting", swap("decisions.md", "- Reflected in:", "- In:"), "accepted decision D1 requires Reflected in"),
    ("ACP533", "drafting", swap("decisions.md", f"`{PRIMARY}`", "`other.md`"), "accepted decision D1 Reflected in must point to declared deliverable"),
    ("ACP534", "drafting", swap("decisions.md", "### D1.", "### D2."), "accepted decision ids must be sequential"),
    ("ACP534", "drafting", swap("decisions.md", "### D1.", "### D01."), "accepted decision ids must be sequential"),
    ("ACP535", "drafting", lambda f: more("decisions.md", (f / "decisions.md").read_text())(f), "duplicate accepted decision id D1"),
    ("ACP540", "revising", write("review.md", f"Review Scope:\nPrimary deliverable completeness\n{PRIMARY}\n"), "review.md must declare Reviewed primary deliverable"),
    ("ACP541", "revising", write("review.md", "x"), "review.md must declare Review Scope"),
    ("ACP542", "revising", write("review.md", "Review Scope:"), "review.md Review Scope must include Primary deliverable completeness"),
    ("ACP543", "revising", write("review.md", "x"), "review.md must reference the primary deliverable"),
    ("ACP544", "completed", swap("conclusion.md", f"See `{PRIMARY}`.", ""), "conclusion.md must reference the primary deliverable"),
    ("ACP950", "drafting", event("server", "deliverable_drafted", doc=PRIMARY, role="primary", sha256="0" * 64), f"seq 2: sha256 is not that of {PRIMARY} as it is now"),
    ("ACP942", "reviewing", swap(PRIMARY, "## Options", "### Options"), f"{PRIMARY}: Options must be a heading of level 2"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "upto", "damage", "text"), V2, ids=names(V2))
def test_a_rule_about_deliverables_speaks(
    tmp_path: Path, code: str, upto: str, damage: Damage, text: str
) -> None:
    folder = make_v2(tmp_path / "run", upto)
    assert code not in {finding.code for finding in validate(folder).findings}
    damage(folder)
    check(folder, validate(folder), code, text)


def test_external_deliverables_are_looked_for_in_the_repository(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "repo" / "run", "completed", repo_root="..")
    assert validate(folder).findings == ()
    (tmp_path / "repo" / "deliverables" / "decision.md").unlink()
    codes = {finding.code for finding in validate(folder).findings}
    assert codes == {"ACP507", "ACP510"}


def test_a_deliverable_that_leads_out_of_its_root_is_not_read(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "reviewing")
    secret = tmp_path / "secret.md"
    (folder / PRIMARY).rename(secret)
    (folder / PRIMARY).symlink_to(secret)
    messages = [finding.message for finding in validate(folder).errors]
    assert messages == [
        f"{PRIMARY} cannot be read: its path points outside the folder of the deliverables"
    ]
