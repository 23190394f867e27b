"""A stand-in for an agent's program: it takes its turns as its prompt says, and needs no model.

It is run as a real program. It reads its prompt as the one it stands in for would, does to the
documents what the prompt asks, runs the exact commands that the prompt names, and prints what
that program would print. How it behaves at each run is a list of words in a file, used up from
the front; when none is left it does its work:

``act`` do it; ``idle`` end well without doing anything; ``crash`` end with code 3; ``early`` try
an event that is refused; ``careless`` append without having written what is needed; ``obey`` do it
only if the prompt quotes a refusal; ``linger`` do it and stay; ``hang`` say a word and stay;
``limit`` say that its model service refuses it for two seconds, and end with code 1; ``limited``
the same for an hour; `FAILURES` lists those that fail as programs do that cannot use their
model service.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from acp_core.protocols.folder.acts import agents

REVIEW = """\
Context:
- Read `proposal.md`.

Reviewed primary deliverable: `deliverables/decision.md`

Review Scope:
- Primary deliverable completeness

Position:
- It is sound.

Concerns:
- None.

Required Changes:
- Name the time to live.

Questions:
- None.
"""
CONCLUSION = {
    "Decision Outcome": "- [proceed] Invalidate by key.",
    "Deliverable Receipt": "- Primary deliverable: `deliverables/decision.md`",
}
FAILURES = {
    "down": ("server_error", 529, "API Error: 529 Overloaded"),
    "logged-out": ("authentication_failed", 401, "Not logged in · Please run /login"),
    "no-model": ("model_not_found", 404, "There's an issue with the selected model."),
    "no-credit": ("billing_error", 400, "Credit balance is too low"),
    "full": ("invalid_request", 400, "Prompt is too long"),
}
"""How the stand-in fails, by the word for it: the error's name, its status, and what it prints."""
DELIVERABLE_SECTIONS = (
    "Question",
    "Recommendation",
    "Options",
    "Tradeoffs",
    "Decision",
    "Next Action",
)


def say(text: str) -> None:
    print(text, flush=True)


class Agent:
    """One run: a prompt, the way to append, and what to print."""

    def __init__(self, prompt: str, printer: str, as_process: bool) -> None:
        self.prompt = prompt
        self.printer = printer
        self.as_process = as_process

    def take_turn(self) -> None:
        """Do every step that the prompt names."""
        for line in self.prompt.splitlines():
            written = re.match(
                r" {3}(?:Write it into|Write the review into) (\S+?),?(?: with .*)?$", line
            )
            if written:
                write(Path(written[1]), self.prompt)
            accepted = re.match(r" {3}Say in one sentence why you accept them, in (\S+)", line)
            if accepted:
                Path(accepted[1]).write_text("The decisions are explicit.\n", encoding="utf-8")
            if line.startswith("    ") and re.search(
                r" --event (?!blocked|deliverable_revised)", line
            ):
                self.append(line.replace("<one short sentence>", "It is done"))

    def append(self, line: str) -> int:
        """Run the command that the prompt names; tell of it as the program would."""
        words = shlex.split(line)
        if self.as_process:
            ended = subprocess.run(words, capture_output=True, text=True, check=False)
            code, output = ended.returncode, ended.stdout + ended.stderr
        else:
            captured = io.StringIO()
            with contextlib.redirect_stdout(captured), contextlib.redirect_stderr(captured):
                code = agents.append(words[words.index("append") + 1 :])
            output = captured.getvalue()
        self.tell(line.strip(), output)
        return code

    def tell(self, command: str, output: str) -> None:
        """Print that a command was run, in the printer's form."""
        if self.printer == "claude":
            use = {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": command}}
            say(json.dumps({"type": "assistant", "message": {"id": "m", "content": [use]}}))
            result = {"type": "tool_result", "tool_use_id": "1", "content": output}
            say(json.dumps({"type": "user", "message": {"content": [result]}}))
        elif self.printer == "codex":
            item = {
                "id": "i",
                "type": "command_execution",
                "command": command,
                "aggregated_output": output,
            }
            say(json.dumps({"type": "item.completed", "item": item}))
        elif self.printer == "opencode":
            state = {"status": "completed", "input": {"command": command}, "output": output}
            say(json.dumps({"type": "tool_use", "part": {"tool": "bash", "state": state}}))
        elif self.printer == "gemini":
            say(json.dumps({"type": "tool_use", "tool_id": "1", "tool_name": "shell"}))
            say(
                json.dumps(
                    {"type": "tool_result", "tool_id": "1", "status": "success", "output": output}
                )
            )
        else:
            say(output)

    def begin(self) -> None:
        """Print what the program prints first."""
        if self.printer == "claude":
            say(json.dumps({"type": "system", "subtype": "init", "model": "stand-in-1",
                            "session_id": "s", "claude_code_version": "9.9.9"}))  # fmt: skip
        elif self.printer == "codex":
            say(json.dumps({"type": "thread.started", "thread_id": "s"}))

    def fail(self, name: str, status: int, text: str) -> None:
        """Print what the program prints where its model service fails, and end."""
        if self.printer == "claude":
            content = [{"type": "text", "text": text}]
            say(json.dumps({"type": "assistant", "error": name, "api_error_status": status,
                            "message": {"id": "e", "content": content}}))  # fmt: skip
            say(json.dumps({"type": "result", "is_error": True, "result": text,
                            "api_error_status": status}))  # fmt: skip
        else:
            say(text)
        sys.exit(1)

    def end(self) -> None:
        """Print what the program prints last."""
        usage = {"input_tokens": 1000, "output_tokens": 50}
        if self.printer == "claude":
            say(json.dumps({"type": "result", "is_error": False, "result": "done", "usage": usage,
                            "total_cost_usd": 0.01, "permission_denials": []}))  # fmt: skip
        elif self.printer == "codex":
            say(json.dumps({"type": "turn.completed", "usage": usage}))
        elif self.printer == "opencode":
            part = {"reason": "stop", "tokens": {"input": 1000, "output": 50}, "cost": 0.01}
            say(json.dumps({"type": "step_finish", "part": part}))
        elif self.printer == "gemini":
            say(json.dumps({"type": "result", "status": "success", "stats": usage}))
        else:
            say("Tokens: 1.0k sent, 50 received.")


def write(path: Path, prompt: str) -> None:
    """Write a document as far as the protocol asks for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(content(path.name, old, prompt), encoding="utf-8")


def content(name: str, old: str, prompt: str) -> str:
    """What a document becomes."""
    if name == "proposal.md":
        return f"# Proposal\n\n## Current Proposal\n\nInvalidate by key ({len(old)}).\n"
    if name.startswith("review-of"):
        return REVIEW
    if name == "decisions.md":
        return (
            old + "\n- Invalidate by key.\n"
            if "Reflected in" in old
            else "# Decisions\n\n- Invalidate by key.\n"
        )
    if name == "readiness.md":
        ticked = re.sub(r"^(\s*- )\[ \]", r"\1[x]", old, flags=re.MULTILINE)
        ticked = re.sub(
            r"^- \[unresolved\].*$",
            "- [resolved] What is the key? The path.",
            ticked,
            flags=re.MULTILINE,
        )
        return ticked + (
            "" if "- [x] Ready to implement" in ticked else "\n- [x] Ready to implement\n"
        )
    if name == "conclusion.md":
        found = re.search(r"headings of the second level: (.*)\.", prompt)
        sections = found[1].split(", ") if found else []
        text = "\n".join(
            f"## {s}\n\n{CONCLUSION.get(s, 'Nothing more to say.')}\n" for s in sections
        )
        return f"# Conclusion\n\n{text}"
    status = "Frozen" if "`Status: Frozen`" in prompt else "Draft"
    text = "\n".join(f"## {section}\n\nBy key.\n" for section in DELIVERABLE_SECTIONS)
    return f"# Decision\n\nStatus: {status}\n\n{text}"


def behaviour(path: Path | None) -> str:
    """How to behave at this run."""
    if path is None or not path.exists():
        return "act"
    words = path.read_text().split()
    path.write_text(" ".join(words[1:]))
    return words[0] if words else "act"


def alone(prompt: str) -> None:
    """Take part without a loop: wait, see what to do, do it, until all is over."""
    runs = [line.strip() for line in prompt.splitlines() if line.startswith("    ")]
    wait = next(line for line in runs if " wait " in line)
    while True:
        said = subprocess.run(
            [*shlex.split(wait), "--interval", "0.05"], capture_output=True, text=True, check=True
        ).stdout
        if "phase: completed" in said or "phase: blocked" in said:
            return
        me = shlex.split(wait)
        folder, who = me[me.index("--folder") + 1], me[me.index("--participant") + 1]
        from datetime import UTC, datetime

        from acp_core.model.turn import Brief
        from acp_core.protocols.folder.conduct.turns import Turns

        brief = Brief(commands="acp {command}", drafts=os.environ["DRAFTS"])
        turns = Turns(folder)
        turns.turn(who, datetime.now(UTC), brief)
        Agent(turns.prompt(who, brief), "text", False).take_turn()


PRINTERS = {
    "claude": "claude",
    "qwen": "claude",
    "codex": "codex",
    "opencode": "opencode",
    "gemini": "gemini",
}


def main(name: str = "agent") -> None:
    """Run once, as the program ``name`` would. Flags that only the real one knows do nothing."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--behaviour", type=Path, default=os.environ.get(f"BEHAVIOUR_{name}"))
    parser.add_argument("--prompt-file", "--message-file", type=Path)
    parser.add_argument("--prompt-text")
    parser.add_argument("--process", action="store_true", help="run the commands as processes")
    parser.add_argument("--alone", action="store_true")
    given, _ = parser.parse_known_args()
    if given.version:
        say(f"{name} 9.9.9")
        return
    if given.prompt_text is not None:
        prompt = given.prompt_text
    else:
        prompt = given.prompt_file.read_text() if given.prompt_file else sys.stdin.read()
    given.printer = PRINTERS.get(name, "text")
    if given.behaviour:
        given.behaviour = Path(given.behaviour)
    agent = Agent(prompt, given.printer, given.process)
    how = behaviour(given.behaviour)
    agent.begin()
    if how == "crash":
        sys.exit(3)
    if how in ("limit", "limited"):
        say(f"Usage limit reached. Try again in {'2 seconds' if how == 'limit' else '1 hour'}.")
        sys.exit(1)
    if how in FAILURES:
        agent.fail(*FAILURES[how])
    if how == "hang":
        say("hanging")
        time.sleep(600)
    if how == "early":
        line = next(line for line in prompt.splitlines() if "--event blocked" in line)
        words = line.replace("--event blocked", "--event completed --doc conclusion.md")
        agent.append(words)
    elif how == "careless":
        line = next(
            line for line in prompt.splitlines() if line.startswith("    ") and " --event " in line
        )
        agent.append(re.sub(r" --review-file \S+", " --review-file /none", line))
    elif how == "obey" and "This event was refused" not in prompt:
        sys.exit("there is no refusal in the prompt")
    elif how != "idle":
        alone(prompt) if given.alone else agent.take_turn()
    agent.end()
    if how == "linger":
        time.sleep(600)


if __name__ == "__main__":
    main()
