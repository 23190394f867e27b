"""What the model of `tests.support.model_service` does: the turn that its prompt asks for, step by step.

The prompts are those of acp, of four protocols; each becomes a list of steps, of which one is done
per request. ``FOLDER/more.json`` may name steps that come before: ``[{"if": TEXT, "steps": [STEP, ...]}]``,
each used by the first prompt that holds the text; a step is a list such as ``["run", "touch x"]``. At the
end of a turn the model says what it heard meanwhile: every text in double square brackets.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.loops.agent import content
from tests.protocols.cycle import agent as cycle_agent
from tests.support.dialects import RESULT, Reply, Talk

SHELLS = ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "exec")
WRITERS = ("Write", "write_file", "write")
READERS = ("Read", "read_file", "read")
SEARCHES = ("ToolSearch", "tool_search")  # two programs have their model look for tools first


@dataclass(frozen=True)
class Step:
    """One thing to do: ``run`` a command, ``write`` or ``read`` a file, ``use`` a tool, or ``say`` something."""

    kind: str
    what: str
    given: Any = None


def recognised(prompt: str, folder: Path) -> list[Step] | None:
    """The steps that a prompt of acp asks for; None where it is none."""
    for reads in (of_folder, of_workspaces, of_integration, of_cycle, of_governed):
        steps = reads(prompt, folder)
        if steps is not None:
            return steps
    return None


def of_folder(prompt: str, folder: Path) -> list[Step] | None:
    """A turn of a folder collaboration: what `tests.loops.agent` does itself, as steps."""
    if "It is your turn. Read first:" not in prompt:
        return None
    steps: list[Step] = []
    for line in prompt.splitlines():
        if found := re.match(r" {3}(?:Write it into|Write the review into) (\S+?),?(?: with .*)?$", line):  # fmt: skip
            path = Path(found[1])
            old = path.read_text() if path.exists() else ""
            steps += written(path, content(path.name, old, prompt))
        elif found := re.match(r" {3}Say in one sentence why you accept them, in (\S+)", line):
            steps += written(Path(found[1]), "The decisions are explicit.\n")
        elif line.startswith("    ") and re.search(r" --event (?!blocked|deliverable_revised)", line):  # fmt: skip
            steps.append(Step("run", line.strip().replace("<one short sentence>", "It is done")))
    return by_tools(steps) if (folder / "tools").exists() else steps


def by_tools(steps: list[Step]) -> list[Step]:
    """The same, where the event is appended by the tool of acp's server."""
    options = {"--event": "event", "--doc": "doc", "--reply-to": "reply_to", "--summary": "summary"}
    made: list[Step] = []
    for step in steps:
        if step.kind == "run" and " append " in step.what:
            values = dict(re.findall(r" (--[a-z-]+) ('[^']*'|\S+)", step.what))
            texts = {name: values[each].strip("'") for each, name in options.items() if each in values}  # fmt: skip
            given: dict[
                str, Any
            ] = {  # one program checks what its model gives against the tool's schema
                name: int(text) if text.isdecimal() else text for name, text in texts.items()
            }
            if path := values.get("--review-file"):
                given["review"] = next(each.given for each in made if each.what == path and each.given)  # fmt: skip
            made.append(Step("use", "append", given))
        else:
            made.append(step)
    return made


def of_workspaces(prompt: str, folder: Path) -> list[Step] | None:
    """The task of a sub-agent: an output, a status file, and what is returned."""
    found = dict(re.findall(r"^(AGENT NAME|TASK ID|Write your primary output to|Write your status file to): *(.+)$", prompt, re.M))  # fmt: skip
    if len(found) < 4:
        return None
    name, task, output, status = (found[each] for each in ("AGENT NAME", "TASK ID", "Write your primary output to", "Write your status file to"))  # fmt: skip
    listed = [{"file": output, "size_estimate": "small", "description": "It"}]
    ended = {"agent": name, "task_id": task, "status": "success", "completed_at": "2031-01-01T00:00:00Z", "outputs": listed}  # fmt: skip
    back = {"status": "success", "agent": name, "task_id": task, "files_written": [output, status], "summary": "It is written.", "errors": []}  # fmt: skip
    return [
        Step("write", output, f"# {name}\n\n## Queues of {name}\n\nOne is enough.\n"),
        Step("write", status, json.dumps(ended)),
        Step("say", json.dumps(back)),
    ]


def of_integration(prompt: str, folder: Path) -> list[Step] | None:
    """The text that is made of what sub-agents wrote."""
    found = re.search(r"^Write the whole text to (.+?);", prompt, re.M)
    if not prompt.startswith("Integration phase.") or found is None:
        return None
    parts = [f"From {each}:\n\n{Path(each).read_text()}" for each in re.findall(r"^\d+\. Read (.+)$", prompt, re.M)]  # fmt: skip
    return [Step("write", found[1], "\n".join(["# All\n", *parts])), Step("say", "It is written.")]


def of_cycle(prompt: str, folder: Path) -> list[Step] | None:
    """A run of RA, EP, CD or VAS: what `tests.protocols.cycle.agent` writes, as steps."""
    who = re.search(r"^You are (RA|EP|CD|VAS),", prompt, re.M)
    if who is None:
        return None
    agent = who[1].lower()
    root, own, version, number = (re.search(each, prompt, re.M)[1] for each in (r"^- The project: (.*)$", r"only you write: (.*)$", r"get version (\S+):", r"^Iteration (\d+)"))  # type: ignore[index] # fmt: skip
    if task := cycle_agent.asked_task(prompt):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            cycle_agent.result("cd", {"tasks_completed": [task], "files_modified": [f"{task}.txt"]})
        return [*written(Path(root, f"{task}.txt"), f"{task}\n"), Step("say", said.getvalue())]
    word = "apart" if agent == "ep" and (folder / "apart").exists() else ""
    with tempfile.TemporaryDirectory() as place:
        shadow, work = Path(place, "project"), Path(place, "own")
        shadow.mkdir()
        work.mkdir()
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(Path(root, "product.txt"), shadow)
        before = {path: path.read_bytes() for path in shadow.iterdir()}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            cycle_agent.result(
                agent, cycle_agent.WORK[agent](shadow, work, version, int(number), word)
            )
        made = [(Path(own, each.name), each) for each in sorted(work.iterdir())]
        made += [(Path(root, each.name), each) for each in shadow.iterdir() if each.read_bytes() != before.get(each)]  # fmt: skip
        steps = [step for path, each in made for step in written(path, each.read_text())]
    log = Path(own, "changes.log")
    line = {"timestamp": "2026-03-02T10:00:00+08:00", "agent": agent, "version": version, "action": "update", "iteration": int(number)}  # fmt: skip
    old = log.read_text() if log.exists() else ""
    return [*steps, *written(log, f"{old}{json.dumps(line)}\n"), Step("say", said.getvalue())]


def of_governed(prompt: str, folder: Path) -> list[Step] | None:
    """A role's turn: the command that ``FOLDER/governed`` names gets the prompt."""
    if "## Required Output" not in prompt or "# Execution Context" not in prompt:
        return None
    file = folder / f"prompt-{len(list(folder.glob('prompt-*')))}"
    file.write_text(prompt)
    command = (folder / "governed").read_text().strip()
    return [Step("run", f"{command} < {file}"), Step("say", "The result is staged.")]


def written(path: Path, text: str) -> list[Step]:
    """A file, read before it is replaced: several programs insist on that."""
    return [*([Step("read", str(path))] if path.exists() else []), Step("write", str(path), text)]


class Script:
    """Answers requests: finds the newest prompt, and does the next of its steps.

    Args:
        folder: holds what tests ask for beside the prompts.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plans: dict[str, list[Step]] = {}

    def reply(self, talk: Talk) -> Reply:
        """What the model does next."""
        if talk.wanted:
            return Reply((json.dumps(instance(talk.wanted)),))
        at = next((n for n in reversed(range(len(talk.said))) if self._is_prompt(talk.said[n])), None)  # fmt: skip
        if at is None or not talk.tools:
            return Reply(("A title",))
        prompt, later = talk.said[at] or "", talk.said[at + 1 :]
        done = sum(each is RESULT for each in later)
        if done == 0 or prompt not in self._plans:
            self._plans[prompt] = self._plan(prompt, talk.tools)
        steps = self._plans[prompt][done:]
        heard = re.findall(r"\[\[(.+?)\]\]", "\n".join(filter(None, later)))
        return self._next(steps, heard, talk.tools)

    def _is_prompt(self, text: str | None) -> bool:
        return text is not None and (text in self._plans or recognised(text, self._folder) is not None)  # fmt: skip

    def _plan(self, prompt: str, tools: tuple[str, ...]) -> list[Step]:
        steps = [*self._more(prompt), *(recognised(prompt, self._folder) or [])]
        steps = [each for each in steps if each.kind != "read" or first(tools, READERS)]
        return [more for each in steps for more in (*self._search(each, tools), each)]

    def _search(self, step: Step, tools: tuple[str, ...]) -> Iterator[Step]:
        search = first(tools, SEARCHES)
        if search and step.kind == "use" and step.what not in tools:
            most = {"max_results": 5} if search == SEARCHES[0] else {}
            yield Step("use", search, {"query": f"select:mcp__acp__{step.what}", **most})

    def _more(self, prompt: str) -> list[Step]:
        """The steps that a test asks for beside those of this prompt, once."""
        file = self._folder / "more.json"
        entries: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
        for entry in entries:
            if entry["if"] in prompt:
                entries.remove(entry)
                file.write_text(json.dumps(entries))
                return [Step(*each) for each in entry["steps"]]
        return []

    def _next(self, steps: list[Step], heard: list[str], tools: tuple[str, ...]) -> Reply:
        told = [f"I heard: {each}\n\n" for each in dict.fromkeys(heard)]
        if not steps:
            return Reply((*told, "Done."))
        step = steps[0]
        if step.kind == "say":
            words = step.what if step.given is None else "word " * step.given
            return Reply((*told, *re.findall(r"\S+\s*", words)), 0.1 if step.given else 0.0)
        name, given = USES[step.kind](step, tools)
        return Reply((f"Next I {step.kind}.",), 0.0, name, given)


def run(step: Step, tools: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """How a command is run; ``given`` says that it needs more than the program's sandbox allows."""
    name = first(tools, SHELLS)
    more: dict[str, Any] = {"description": "a step"}
    if name == "run_shell_command" and "write_file" in tools:
        more["is_background"] = False
    if name in ("exec_command", "exec"):
        more = {"sandbox_permissions": "require_escalated", "justification": "May I?"} if step.given else {}  # fmt: skip
        if name == "exec":
            call = json.dumps({"cmd": step.what, **more})
            return name, {"code": f"const r = await tools.exec_command({call}); text(r.output);"}
        return name, {"cmd": step.what, **more}
    return name, {"command": step.what, **more}


def write(step: Step, tools: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """How a file is written: by a tool for that, or by a command."""
    name = first(tools, WRITERS)
    if not name:
        path = shlex.quote(step.what)
        folder = shlex.quote(str(Path(step.what).parent))
        command = f"mkdir -p {folder} && printf %s {shlex.quote(step.given)} > {path}"
        return run(Step("run", command), tools)
    return name, {"filePath" if name == "write" else "file_path": step.what, "content": step.given}


def read(step: Step, tools: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    name = first(tools, READERS)
    return name, {"filePath" if name == "read" else "file_path": step.what}


def use(step: Step, tools: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """How a tool of acp's server is called, whatever the program makes of its name."""
    ends = (f"_{step.what}", f"/{step.what}")
    named = [each for each in tools if each.endswith(ends) and "acp" in each]
    hidden = step.what not in tools and SEARCHES[1] in tools  # found, and never listed
    return (named or [f"mcp__acp__{step.what}" if hidden else step.what])[0], step.given


USES: dict[str, Callable[[Step, tuple[str, ...]], tuple[str, dict[str, Any]]]] = {
    "run": run,
    "write": write,
    "read": read,
    "use": use,
}


def first(tools: tuple[str, ...], names: tuple[str, ...]) -> str:
    return next((each for each in names if each in tools), "")


def instance(schema: dict[str, Any]) -> Any:
    """The least that a schema allows."""
    kind = str(schema.get("type", "object")).lower()
    if schema.get("enum"):
        return schema["enum"][0]
    if kind == "object":
        return {name: instance(each) for name, each in schema.get("properties", {}).items()}
    return {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": []}.get(kind)
