"""Where the rules on what agents report speak, and where they do not."""

from __future__ import annotations

from tests.protocols.cycle.making import PROGRESS, agent, agents
from tests.protocols.cycle.situations import Situation, on

GOOD = {
    "phase": "cd",
    "status": "success",
    "files_written": "[implementation.md]",
    "summary": "Wrote it",
    "issues": "[]",
}


def block(**changed: str | None) -> str:
    """A report that is in order, but for these keys; None leaves one out."""
    lines = [f"- {key}: {said}" for key, said in (GOOD | changed).items() if said is not None]
    return "Done.\n\nPHASE_RESULT:\n" + "\n".join(lines) + "\n"


def kept(text: str, name: str = "1-cd.txt", situation: Situation | None = None) -> Situation:
    """A cycle of whose agent this report was kept."""
    base = situation or on()
    written = {"cd/implementation.md": "# I - v1.0.0\n"}
    files = base.files | written | {f"coordination/phase-results/{name}": text}
    return Situation(base.word, base.changed, files)


FAILED = on(agents=agents(cd=agent("failed", 15)))
COMPLETED = on("completed")

SPEAK: list[tuple[str, Situation]] = [
    ("A70 error", kept("I finished the work, all good.\n")),
    ("A71 error", kept(block(phase="vas"))),
    ("A71 error", kept(block(phase="qa"))),
    ("A72 error", kept(block(status="done"))),
    ("A73 warning", kept(block(files_written=None))),
    ("A73 warning", kept(block(summary=None))),
    ("A74 warning", kept(block(files_written="[implementation.md, issues.md]"))),
    ("A74 warning", kept(block(files_written=f"[{PROGRESS}/cd/issues.md]"))),
    ("A75 warning", kept(block(status="partial"))),
    ("A75 warning", kept(block(status="failed", issues="none"))),
    ("A76 advice", kept(block(status="failed", issues="[x]") + "\nretried\n\n" + block())),
    ("A77 warning", kept(block(status="failed", issues="[x]"), situation=COMPLETED)),
    ("A77 warning", kept(block(), situation=FAILED)),
]

SILENT: list[tuple[str, Situation]] = [
    ("A70", kept(block().replace("\n", "\r\n"))),
    ("A70", kept(f"```\n{block()}```\n")),
    ("A70", Situation(files=kept("It crashed.\n").files | kept(block(), "1-cd-2.txt").files)),
    ("A71", kept(block(phase="CD"), "1-cd-2.txt")),
    ("A72", kept(block(status="**success**"))),
    ("A73", kept(block(files_written=None, files_changed="2"))),
    ("A74", kept(block(files_written="[src/csv.py, cd/implementation.md]"))),
    ("A74", kept(block(files_written=f"[.workflow\\.cycle\\{PROGRESS[17:]}\\cd\\implementation.md]"))),
    ("A75", kept(block(status="partial", issues=None, blockers="\n  - FR-003 unclear"))),
    ("A76", kept(block())),
    ("A77", kept(block(status="partial", issues="[x]"), situation=COMPLETED)),
    ("A77", kept(block(status="failed", issues="[x]"), "0-cd.txt", COMPLETED)),  # run again since
    ("A77", kept(block(phase="vas", status="failed", issues="[x]"), "1-vas.txt",
                 on("completed", test_results={"total_tests": 9, "failed_tests": ["a"]}))),
    ("A77", Situation("completed", {}, kept(block(status="failed", issues="[x]")).files
                      | kept(block(), "1-cd-2.txt").files)),
]  # fmt: skip
