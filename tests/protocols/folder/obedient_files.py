"""The world of `obedient` on files: participants run commands, people do what a problem names first."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from acp_core.protocols.folder.conduct import waiting
from acp_core.protocols.folder.schema import documents, records
from acp_core.protocols.folder.schema.records import V2
from tests.protocols.folder.acting import acp, log
from tests.protocols.folder.obedient import LONG, Stuck, conclusion
from tests.protocols.folder.support import read_protocol

MEMO = "deliverables/decision.md"
SECTIONS = ("Question", "Recommendation", "Options", "Tradeoffs", "Decision", "Next Action")
REVIEW = (
    f"Reviewed primary deliverable: `{MEMO}`\n\nReview Scope:\n- Primary deliverable completeness\n"
)


class Files:
    """A collaboration in a folder.

    Attributes:
        named: what named a person, once somebody did.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        protocol = read_protocol(folder)
        self.people = tuple(records.participant_ids(protocol))
        self.dialect = records.dialect_of(protocol)
        self.gates = records.gate_texts(protocol)
        self.objections = self.rounds = 1
        self.ahead = 0.0
        self.mine: list[tuple[str, str]] = []
        self.trail: list[str] = []
        clock = SimpleNamespace(
            time=lambda: time.time() + self.ahead, monotonic=time.monotonic, sleep=time.sleep
        )
        patch.setattr(waiting, "time", clock)

    def told(self, who: str) -> str:
        ran = acp("next", "--folder", self.folder, "--participant", who)
        if ran.code == 2:
            return f"stop: a human sees to it: {ran.err}"
        return ran.out.splitlines()[-1].removeprefix("next action: ")

    def listed(self, who: str) -> bool:
        ran = acp("next", "--folder", self.folder, "--participant", who)
        return f"waiting for: {who}" in ran.out or f", {who}" in ran.out.splitlines()[2]

    def over(self) -> bool:
        return bool(self._events() & {"completed", "blocked"})

    def _events(self) -> set[object]:
        path = self.folder / "events.jsonl"
        lines = records.parse_lines(path.read_bytes()) if path.is_file() else []
        return {each.event for each in lines if isinstance(each, records.Entry)}

    def append(self, who: str, event: str) -> None:
        lines = records.parse_lines((self.folder / "events.jsonl").read_bytes())
        entries = [each for each in lines if isinstance(each, records.Entry)]
        last = next((each.seq for each in reversed(entries) if each.seq), 1)
        words = ["--folder", self.folder, "--participant", who, "--event", event]
        words += ["--summary", f"Done {len(entries)}.", "--reply-to", last]
        if event.startswith("deliverable_"):
            if event == "deliverable_frozen":
                self._memo("Frozen")
                digest = hashlib.sha256((self.folder / MEMO).read_bytes()).hexdigest()
                words += ["--sha256", digest]
            words += ["--role", "primary", "--doc", MEMO]
        elif event == "completed":
            words += ["--doc", "conclusion.md"]
        elif event == "review_submitted":
            text = self.folder.parent / "mine.md"
            text.write_text((REVIEW if self.dialect == V2 else "") + "Position:\n- Yes.\n")
            words += ["--review-file", text]
        ran = acp("append", *map(str, words))
        if "already has a heading" in ran.err:  # which says to leave the text away
            ran = acp("append", *map(str, words[:-2]))
        self.trail.append(f"{who}: {event} -> {ran.code}")
        if ran.code:
            raise Stuck(f"{who} was told {self.told(who)!r}, but: {ran.err}")

    def draft(self, who: str) -> None:
        self._memo("Draft")
        self.append(who, "deliverable_drafted")

    def _memo(self, status: str) -> None:
        parts = [
            f"# Memo\n\nStatus: {status}\n",
            *(f"## {name}\n\nIt is so.\n" for name in SECTIONS),
        ]
        (self.folder / MEMO).parent.mkdir(exist_ok=True)
        (self.folder / MEMO).write_text("\n".join(parts))

    def _change(self, name: str, text: str) -> bool:
        path = self.folder / name
        before = path.read_text() if path.is_file() else None
        path.write_text(text)
        return before != text

    def _readiness(self) -> str:
        path = self.folder / "readiness.md"
        return path.read_text() if path.is_file() else "# Readiness\n"

    def clear(self) -> bool:
        text = re.sub(r"- \[(blocking|unresolved|deferred_nonblocking|resolved)\][^\n]*",
                      "- [resolved] It is settled.", self._readiness())  # fmt: skip
        return self._change("readiness.md", text)

    def object(self, who: str) -> None:
        self.objections -= 1
        self.mine.append((who, item := f"- [blocking] {who} wants to know who pays.\n"))
        self._change("readiness.md", self._readiness() + "\n" + item)
        self.trail.append(f"{who} objects")

    def withdraw(self, who: str) -> bool:
        if who != self.people[-1]:  # the others leave it there
            return False
        text = self._readiness()
        for author, item in self.mine:
            text = text.replace(item, "") if author == who else text
        return self._change("readiness.md", text)

    def check(self, *, gates: bool) -> bool:
        text = self._readiness()
        for label in self.gates if gates else (documents.READY,):
            text = text.replace(f"- [ ] {label}", f"- [x] {label}")
            if f"- [x] {label}" not in text:
                text += f"\n- [x] {label}\n"
        return self._change("readiness.md", text)

    def conclude(self) -> bool:
        text = conclusion(self.dialect) + f"\n{MEMO}\n"
        return self._change("conclusion.md", text)

    def mend(self) -> bool:
        """What the validator's errors lead to: a participant mends documents, or blocks."""
        ran = acp("validate", "--folder", self.folder)
        errors = re.findall(r"(?m)^ERROR: (.*)$", ran.out)
        changed = [self._mend(error) for error in errors]
        if errors and not any(changed):
            self.append(self.people[0], "blocked")
        return bool(errors)

    def _mend(self, error: str) -> bool:
        path = self.folder / "review.md"
        review = path.read_text() if path.is_file() else "# Reviews\n"
        if found := re.match(r"missing (\w+\.md)$", error):
            (self.folder / found[1]).write_text(f"# {found[1]}\n")
        elif found := re.match(r"seq (\d+): review_submitted requires", error):
            who = next(e["from"] for e in log(self.folder) if str(e["seq"]) == found[1])
            path.write_text(f"{review}\n## 2026-01-02 - {who} - seq {found[1]}\n\nYes.\n")
        elif found := re.match(r"review.md heading seq (\d+):", error):
            path.write_text(re.sub(rf"(?m)^##.*seq {found[1]}\s*$", "", review))
        elif error.startswith("review.md must"):
            path.write_text(review + REVIEW)
        elif found := re.match(r"(\S+) is not part of the protocol", error):
            (self.folder / found[1]).unlink()
        elif error.startswith("conclusion.md"):
            return self.conclude()
        else:
            return False
        return True

    def resume(self) -> None:
        ran = acp("init", "--folder", self.folder, "--resume")
        if ran.code:
            raise Stuck(ran.err)

    def pass_time(self) -> None:
        self.ahead += LONG.total_seconds()
