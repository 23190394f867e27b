"""Many writers at once: real processes, one log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from acp_core.protocols.folder.rules import checks
from tests.protocols.folder.acting import ROOT, acp
from tests.protocols.folder.support import make_v1

_MANY = """
import sys
from acp_core.protocols.folder.acts import agents as commands

folder, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
codes = [
    commands.append(
        ["--folder", folder, "--participant", who, "--event", "blocked",
         "--summary", f"{who} says it {number}", "--reply-to", "1"]
    )
    for number in range(count)
]
sys.exit(any(codes))
"""


def seqs(folder: Path) -> list[int]:
    data = (folder / "events.jsonl").read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line)["seq"] for line in data.splitlines()]


def test_eight_processes_append_fifty_events_each(tmp_path: Path) -> None:
    people = tuple(f"agent-{number}" for number in range(8))
    folder = make_v1(tmp_path / "run", "drafting", participants=people)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _MANY, str(folder), name, "50"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )
        for name in people
    ]
    printed = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 8, printed
    assert seqs(folder) == list(range(1, 402))
    acknowledged = sorted(
        int(line.split()[2].rstrip(":")) for text in printed for line in text.splitlines()
    )
    assert acknowledged == list(range(2, 402))
    assert checks.validate(folder).lines() == ["ACP validation passed"]
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_reviewers_submit_at_the_same_time(tmp_path: Path) -> None:
    """The flow that agents really have: everybody writes a review with its event, once."""
    people = ("owner", *(f"reviewer-{number}" for number in range(6)))
    folder = make_v1(tmp_path / "run", "reviewing", participants=people)
    writers = []
    for name in people[1:]:
        body = tmp_path / f"{name}.md"
        body.write_text(f"Position:\n- {name} agrees.\n")
        argv = [
            sys.executable, "-m", "acp_tui", "append", "--folder", str(folder), "--participant",
            name, "--event", "review_submitted", "--summary", "Reviewed.", "--reply-to", "2",
            "--doc", "review.md", "--review-file", str(body),
        ]  # fmt: skip
        writers.append(subprocess.Popen(argv, stderr=subprocess.PIPE, cwd=ROOT))
    errors = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 6, errors
    assert seqs(folder) == list(range(1, 9))
    assert checks.validate(folder).lines() == ["ACP validation passed"]
    text = (folder / "review.md").read_text()
    assert all(text.count(f"- {name} agrees.") == 1 for name in people[1:])
    owner = acp("next", "--folder", folder, "--participant", "owner")
    assert owner.out.startswith("phase: revising\n")


def test_only_one_of_several_inits_wins(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    writers = [
        subprocess.Popen(
            [
                sys.executable, "-m", "acp_tui", "init", "--folder", str(folder), "--participant",
                f"owner-{number}", "--participant", "reader", "--objective", f"Objective {number}",
                "--completion", "Done",
            ],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
        )
        for number in range(4)
    ]  # fmt: skip
    for writer in writers:
        writer.communicate()
    assert sorted(writer.returncode for writer in writers) == [0, 2, 2, 2]
    winner = next(number for number, writer in enumerate(writers) if writer.returncode == 0)
    for name in ("README.md", "proposal.md", "protocol.json"):
        assert f"Objective {winner}" in (folder / name).read_text()
    assert json.loads((folder / "events.jsonl").read_text())["from"] == f"owner-{winner}"
    assert checks.validate(folder).lines() == ["ACP validation passed"]
