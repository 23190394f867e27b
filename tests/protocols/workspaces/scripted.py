"""A program that stands in for a sub-agent: it reads its prompt and behaves as a file says.

``BEHAVIOURS`` is JSON, agent -> list of words, one per attempt (the last one holds for the rest):
``success``, ``partial``, ``failure``, ``silent`` (writes a note and never returns), ``lost`` (no
status file), ``contradict`` (success with another price), ``dear`` (partial with another price), ``stray`` (success, and writes into the
integration folder), ``usurp`` (success, and writes the final output), ``slow`` (success after a second), ``synthesise`` (integrates). ``LOG`` gets a
line at its start and at its end.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path


def main(behaviours: str, log: str) -> None:
    prompt = sys.stdin.read()
    if prompt.startswith("Integration phase."):
        synthesise(prompt, log)
        return
    name, task = field(prompt, "AGENT NAME:"), field(prompt, "TASK ID:")
    output = Path(field(prompt, "Write your primary output to:"))
    status = Path(field(prompt, "Write your status file to:"))
    said = json.loads(Path(behaviours).read_text()).get(name, ["success"])
    begun = sum(line.startswith(f"begins {name} ") for line in lines(log))
    note(log, f"begins {name} {os.getpid()}")
    how = said[min(begun, len(said) - 1)]
    if how == "silent":
        (output.parent / "notes.md").write_text("Thinking.\n")
        time.sleep(600)
    time.sleep(1.0 if how == "slow" else 0.05)
    price = 12 if how in ("contradict", "dear") else 10
    how = "partial" if how == "dear" else how
    word = how if how in ("partial", "failure") else "success"
    if how == "stray":
        (output.parent.parent.parent / "stray.md").write_text("Mine.\n")
    if how == "usurp":
        final = output.parent.parent.parent / "integration/final-output.md"
        final.write_text("All mine.\n")
    written = []
    if word != "failure":
        text = f"# {name}\n\n## Cost of the queue\n\n- Price: {price}\n\nSaid by {name}.\n"
        output.write_text(text if output.suffix == ".md" else json.dumps({"price": price}))
        written.append(str(output))
    if how != "lost":
        listed = [{"file": each, "size_estimate": "small", "description": "It"} for each in written]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        made = {"agent": name, "task_id": task, "status": word, "completed_at": at}
        beside = status.with_name("status.tmp")
        beside.write_text(json.dumps({**made, "outputs": listed}))
        os.replace(beside, status)
        written.append(str(status))
    back = {
        "status": word,
        "agent": name,
        "task_id": task,
        "files_written": written,
        "summary": f"Attempt {begun + 1}.",
        "errors": [] if word == "success" else ["The rest is missing."],
    }
    print(f"```json\n{json.dumps(back)}\n```" if how == "contradict" else json.dumps(back))
    note(log, f"ends {name} {how}")


def synthesise(prompt: str, log: str) -> None:
    """Write what all wrote into one text, each part with its source."""
    draft = field(prompt, "Write the whole text to").partition(";")[0]
    parts = ["# All\n"]
    for path in re.findall(r"^\d+\. Read (.+)$", prompt, re.M):
        parts.append(f"From {path}:\n\n{Path(path).read_text()}")
    Path(draft).write_text("\n".join(parts))
    note(log, "integrates")
    print("It is written.")


def field(prompt: str, label: str) -> str:
    found = re.search(rf"^{re.escape(label)}[ \t]*(.+)$", prompt, re.M)
    assert found is not None, label
    return found[1].strip()


def note(log: str, line: str) -> None:
    with open(log, "a") as file:
        file.write(f"{line}\n")


def lines(log: str) -> list[str]:
    path = Path(log)
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    main(*sys.argv[1:3])
