"""What does not go together in a run, as findings: each rule a small function with its code.

Rules on status files, returns, the run as a whole, prompts and what was integrated; `CODES` tells why
each exists and what to do, `ACTIONS` the act that does it, where there is one.

Source: agent workspaces specification, "Status File Schema", "Return Value Contract", "Conflict
Prevention via Agent-Namespaced Paths", "File-Based Handoffs", "Prompt Template for Subagent
Dispatch", "Integration Step Protocol", "Conflict Resolution Protocol" and "Why Protocols Matter".
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.model.format import dated
from acp_core.model.text import clean_line
from acp_core.protocols.kit.findings import UNSEEN_TEXT, advice, error, warning
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import manifest, scan
from acp_core.protocols.workspaces.schema import (
    DEEPEST,
    FINISH_ACT,
    REPAIR_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    TRIAGE_ACT,
    Agent,
    Dispatch,
    Listed,
    Report,
    Returned,
    Run,
)

_RECORD = re.compile(
    r"Conflict between ([^\n]+?) and ([^\n]+?) on ([^\n]+?)\. Resolved by ([^\n]+?)\."
)

_ANY = re.compile(r"Conflict between [^\n]+")

_RULES = {
    "factual": ("factual", "specific", "sourced", "consistent", "authorit", "source"),
    "coverage": ("coverage", "merg", "detailed"),
    "format": ("format", "structure"),
}

Findings = Iterator[Finding]


def b60(run: Run) -> Findings:
    """Nothing is integrated before every agent ended and was decided on."""
    for agent in run.agents if run.finals else ():
        if state.undecided(agent, run):
            message = f"the final output is there and {agent.name} ({agent.outcome}) is undecided"
            yield error("B60", message, _final(run))
        elif not state.finished(agent, run):
            yield error(
                "B60", f"the final output is there and {agent.name} has no result", _final(run)
            )


def b61(run: Run) -> Findings:
    """The final output is newer than what went into it."""
    if run.finals and state.older_than_inputs(run):
        yield warning("B61", "the final output is older than an output it uses", _final(run))


def b62(run: Run) -> Findings:
    """A final output comes with an integration status."""
    if run.finals and run.integration is None:
        yield warning("B62", "there is no integration status", _final(run))


def b63(run: Run) -> Findings:
    """Every agent was integrated or skipped, as it was decided."""
    if run.integration is None:
        return
    covered = {*run.integrated.integrated, *run.integrated.skipped}
    for agent in run.agents:
        if agent.name not in covered:
            message = f"{agent.name} is listed neither as integrated nor as skipped"
            yield warning("B63", message, run.integration.file)
        elif agent.decision in ("skip", "gap") and agent.name in run.integrated.integrated:
            message = f"{agent.name} was integrated despite the decision to skip it"
            yield warning("B63", message, run.integration.file)


def b64(run: Run) -> Findings:
    """What a skipped or failed agent leaves open is a gap."""
    if run.integration is None:
        return
    for agent in run.agents:
        left = agent.name in run.integrated.skipped or agent.outcome == schema.FAILURE
        if left and not any(agent.name in gap for gap in run.integrated.gaps):
            message = f"{agent.name} is not among the gaps"
            yield warning("B64", message, run.integration.file)


def b65(run: Run) -> Findings:
    """Each conflict has its record sentence."""
    for found in _ANY.findall(run.final_text):
        if not _RECORD.match(found):
            yield warning("B65", f"no resolution: {found}", _final(run))
    if run.finals:
        for conflict in state.open_conflicts(run):
            topic = conflict.topic or "?"
            yield warning("B65", f"the conflict on {topic} has no resolution", _final(run))


def b66(run: Run) -> Findings:
    """The rule is one for the conflict's category."""
    for conflict in run.recorded.conflicts:
        category = conflict.category
        found = _RECORD.search(conflict.sentence)
        rule = (found[4] if found else conflict.rule).lower()
        if rule and category in _RULES and not any(word in rule for word in _RULES[category]):
            message = f"the rule “{rule}” does not fit a {category} conflict"
            yield warning("B66", message, _final(run))


def b67(run: Run) -> Findings:
    """There is one final output."""
    if len(run.finals) > 1:
        yield warning("B67", f"there are {len(run.finals)} final outputs", _final(run))


def b68(run: Run) -> Findings:
    """Only the orchestrator writes into integration/."""
    for trespass in run.trespasses:
        if trespass.file in run.planted:
            who = state.trespassers([trespass])
            yield error("B68", f"{who} wrote {trespass.file.name}", trespass.file)
    for agent in run.agents:
        listed = (*agent.outputs, *(agent.returned.listed if agent.returned else ()))
        for each in listed:
            is_planted = each.file in run.planted
            if each.path and each.path.is_relative_to(run.root / "integration") and not is_planted:
                file = agent.status.file if agent.status else None
                yield error("B68", f"{agent.name} wrote {each.written}", file)
                break


def _final(run: Run) -> File | None:
    return run.finals[0] if run.finals else None


INTEGRATION_RULES = (b60, b61, b62, b63, b64, b65, b66, b67, b68)

SECTIONS = (
    *("YOUR TASK", "INPUTS", "OUTPUTS", "TASK ID", "AGENT NAME"),
    *("SCOPE BOUNDARIES", "RETURN FORMAT", "PERMISSIONS"),
)

_BRACKET = re.compile(r"\[(?:[A-Z][A-Z /-]*|may/may not)\]")

_OUTPUT = re.compile(
    r"^Write your (?:primary output|status file) to:[ \t]*(\S[^\n]*?)[ \t]*$", re.M
)

_WRITE = re.compile(r"^You may write only to paths within:[ \t]*(\S[^\n]*?)[ \t]*$", re.M)
_TASK = re.compile(r"^YOUR TASK:[ \t]*\n(.*?)(?=^[A-Z][A-Z ]+:|\Z)", re.M | re.S)


def b50(run: Run) -> Findings:
    """No bracket is left to fill."""
    for prompt in run.prompts:
        for found in sorted(set(_BRACKET.findall(prompt.text))):
            yield error("B50", f"{found} was not filled in", prompt.file)


def b51(run: Run) -> Findings:
    """Paths are absolute."""
    for prompt in run.prompts:
        for written in (*_OUTPUT.findall(prompt.text), *_WRITE.findall(prompt.text)):
            if not os.path.isabs(written) and not written.startswith("["):
                yield error("B51", f"the path {written} is not absolute", prompt.file)


def b52(run: Run) -> Findings:
    """All sections are there."""
    for prompt in run.prompts:
        for section in SECTIONS:
            if not re.search(rf"^{section}:", prompt.text, re.M):
                yield error("B52", f"the section {section} is missing", prompt.file)


def b53(run: Run) -> Findings:
    """The task is one paragraph."""
    for prompt in run.prompts:
        task = _TASK.search(prompt.text)
        if task and len(re.findall(r"\n[ \t]*\n(?=[ \t]*\S)", task[1].strip())) > 0:
            yield warning("B53", "the task is longer than one paragraph", prompt.file)


def b54(run: Run) -> Findings:
    """The agent may write to its own workspace, and nowhere else."""
    for prompt in run.prompts:
        for written in _WRITE.findall(prompt.text):
            if prompt.agent and os.path.basename(written.rstrip("/")) != prompt.agent:
                yield warning("B54", f"{prompt.agent} may write to {written}", prompt.file)


def b55(run: Run) -> Findings:
    """Somebody may launch agents of its own; a manager's agents may not."""
    for prompt in run.prompts:
        launches = re.search(r"^You may launch additional subagents", prompt.text, re.M)
        if launches and run.level >= DEEPEST:
            yield warning(
                "B55", "an agent of a manager may launch additional subagents", prompt.file
            )
        elif launches:
            yield advice("B55", "the agent may launch additional subagents", prompt.file)


PROMPT_RULES = (b50, b51, b52, b53, b54, b55)
_REQUIRED = ("status", "agent", "task_id", "files_written", "summary", "errors")
_SENTENCE = re.compile(r"[.!?](?=\s|$)")
Value = dict[str, object]


def b20(run: Run) -> Findings:
    """An object with a status can be found in it."""
    for returned in run.returns:
        if returned.value is None:
            yield error("B20", f"the return {returned.problem}", returned.file)


def b21(run: Run) -> Findings:
    """The required keys stand in it."""
    for value, returned in _read_return(run):
        for key in _REQUIRED:
            if key not in value:
                yield error("B21", f"the return lacks {key}", returned.file)


def b22(run: Run) -> Findings:
    """The status is a known word."""
    for value, returned in _read_return(run):
        if not schema.outcome(value["status"]):
            yield error("B22", f"the status {value['status']!r} is unknown", returned.file)


def b23(run: Run) -> Findings:
    """A partial or a failure says why."""
    for value, returned in _read_return(run):
        how = schema.outcome(value["status"])
        if how in schema.DECISIONS and not value.get("errors"):
            yield warning("B23", f"{how}, but errors gives no reason", returned.file)


def b24(run: Run) -> Findings:
    """A success has no errors."""
    for value, returned in _read_return(run):
        if schema.outcome(value["status"]) == schema.SUCCESS and value.get("errors"):
            yield warning("B24", "success, but errors is not empty", returned.file)


def b25(run: Run) -> Findings:
    """The summary has one to three sentences."""
    for value, returned in _read_return(run):
        if "summary" not in value:
            continue
        summary = schema.decode_object(Report, value).summary.strip()
        if not summary:
            yield warning("B25", "the summary is empty", returned.file)
        elif len(_SENTENCE.findall(summary)) > 3:
            yield warning("B25", "the summary has more than three sentences", returned.file)


def b26(run: Run) -> Findings:
    """It ended as the status file says."""
    for agent, value, file in _pairs(run):
        said = schema.outcome(value["status"])
        if said and agent.outcome and said != agent.outcome:
            yield error("B26", f"returned {said}, but the status file says {agent.outcome}", file)


def b27(run: Run) -> Findings:
    """Agent and task are those of the status file."""
    for agent, value, file in _pairs(run):
        for key in ("agent", "task_id"):
            here, there = value.get(key), agent.value.get(key)
            if here and there and here != there:
                yield error(
                    "B27", f"returned {key} {here!r}, but the status file says {there!r}", file
                )


def b28(run: Run) -> Findings:
    """The same files are listed in both, the status file aside."""
    for agent, _, file in _pairs(run):
        own = {record.file.path for record in agent.records}
        listed = agent.returned.listed if agent.returned else ()
        here = {each.path for each in listed if each.path} - own
        there = {each.path for each in agent.outputs if each.path} - own
        for path in sorted(there - here):
            yield warning(
                "B28", f"{path.name} is in the status file but not in files_written", file
            )
        for path in sorted(here - there):
            yield warning(
                "B28", f"{path.name} is in files_written but not in the status file", file
            )


def b29(run: Run) -> Findings:
    """What was written exists."""
    for _, returned in _read_return(run):
        for listed in returned.listed:
            if listed.file is None:
                yield error("B29", f"{listed.written} was not written", returned.file)


def b30(run: Run) -> Findings:
    """Paths are absolute."""
    for _, returned in _read_return(run):
        for listed in returned.listed:
            if listed.relative:
                yield warning("B30", f"{listed.written!r} is not an absolute path", returned.file)


def b31(run: Run) -> Findings:
    """The task is called by its role and a short description."""
    for value, returned in _read_return(run):
        task = schema.decode_object(Report, value).task_id
        if task and not re.fullmatch(r"[A-Za-z0-9_]+(-[A-Za-z0-9_.]+)+", task):
            yield warning("B31", f"the task_id {task!r} is not role-description", returned.file)


def b32(run: Run) -> Findings:
    """There is no prose around it."""
    for _, returned in _read_return(run):
        if returned.prose:
            yield warning("B32", "there is text around the returned object", returned.file)


def _read_return(run: Run) -> Iterator[tuple[Value, Returned]]:
    for returned in run.returns:
        if returned.value is not None:
            yield returned.value, returned


def _pairs(run: Run) -> Iterator[tuple[Agent, Value, File]]:
    for agent in run.agents:
        if agent.returned and agent.returned.value is not None and agent.value:
            yield agent, agent.returned.value, agent.returned.file


RETURN_RULES = (b20, b21, b22, b23, b24, b25, b26, b27, b28, b29, b30, b31, b32)
_MANY = 0.2  # the share of partial and failed agents that tells of too many agents
_INPUT = re.compile(r"^[-*]\s*`?(/[^\n`]*?)`?(?:[:,;][ \t][^\n]*)?[ \t]*\(required\)", re.M | re.I)
_STAMPED = re.compile(r"-\d{8}-\d{4}\.")


def b36(run: Run) -> Findings:
    """The manifest says of each agent what it must say."""
    wrong = manifest.manifest_problem(run)
    if wrong:
        yield error("B36", f"the manifest cannot be used: {wrong}", _file(run))


def b37(run: Run) -> Findings:
    """The manifest is there where a run was prepared."""
    if manifest.is_manifest_lost(run):
        yield error("B37", "the manifest is missing, but its prompts exist")


def b38(run: Run) -> Findings:
    """No writing was interrupted."""
    fault = manifest.journal_fault(run)
    left = manifest.interrupted_write(run)
    if fault:
        yield error("B38", f"a write was interrupted, and cannot be finished: {fault}")
    elif left is not None:
        done = f"{left.done} of {left.total} files were written"
        yield warning("B38", f"a write was interrupted: {left.what} ({done})")


def b39(run: Run) -> Findings:
    """What the orchestrator keeps of the run can be read."""
    for record in run.coordination:
        problem = manifest.why_unreadable(record, run)
        if problem:
            yield error("B39", f"{record.file.name} {problem}", record.file)


def b40(run: Run) -> Findings:
    """No two agents list one file."""
    owners: dict[Path, set[str]] = {}
    for agent in run.agents:
        for listed in agent.outputs:
            if listed.path:
                owners.setdefault(listed.path, set()).add(agent.name)
    for path, names in owners.items():
        if len(names) > 1:
            who = " and ".join(sorted(names))
            owner = {name for name in names if path.is_relative_to(run.base / name)}
            for agent in run.agents:
                if agent.name in names - owner and agent.status:
                    yield error("B40", f"{who} list the same file {path.name}", agent.status.file)


def b41(run: Run) -> Findings:
    """No two dispatches share an agent or an output path without a stamp."""
    items = [schema.decode_object(Dispatch, item) for item in dispatches(run)]
    for key in ("agent", "output"):
        counted = Counter(getattr(item, key) for item in items)
        for value, number in counted.items():
            same = [item for item in items if getattr(item, key) == value]
            stamped = sum(bool(_STAMPED.search(item.output)) for item in same)
            if value and number > 1 and (key == "output" or stamped < number - 1):
                yield error("B41", f"{number} dispatches share the {key} {value}", _file(run))


def b42(run: Run) -> Findings:
    """Each task has its own id."""
    counted = Counter(agent.task_id for agent in run.agents if agent.task_id)
    for task, number in counted.items():
        if number > 1:
            yield error("B42", f"{number} agents have the task_id {task}", _file(run))


def b43(run: Run) -> Findings:
    """The workspace is there before the agent is dispatched."""
    for agent in run.agents:
        if agent.folder is None and agent.plan.is_dispatched:
            yield warning("B43", f"{agent.name} was dispatched without a workspace", _file(run))


def b44(run: Run) -> Findings:
    """Whoever works writes now and then."""
    for agent in run.agents:
        if state.of_agent(agent, run) == "stalled" and agent.last_write:
            message = f"{agent.name} has no status file, last write {dated(agent.last_write)}"
            yield warning("B44", message, agent.files[-1])


def b45(run: Run) -> Findings:
    """No output lies beside the workspaces."""
    for file in run.stray:
        yield warning("B45", f"{file.name} is outside the workspaces", file)


def b46(run: Run) -> Findings:
    """The manifest and the workspaces name the same agents."""
    if run.manifest is None or run.manifest.value is None:
        return
    for agent in run.agents:
        if not agent.is_planned and agent.folder:
            yield advice("B46", f"{agent.name} is not in the manifest", run.manifest.file)
        if agent.is_planned and agent.folder is None and (run.finals or run.integration):
            yield error(
                "B46", f"{agent.name} is in the manifest but has no workspace", run.manifest.file
            )


def b47(run: Run) -> Findings:
    """Most agents succeed; where they do not, there are too many."""
    ended = [agent for agent in run.agents if agent.outcome]
    bad = [agent for agent in ended if agent.outcome != schema.SUCCESS]
    if ended and len(bad) / len(run.agents) > _MANY:
        yield warning("B47", f"{len(bad)} of {len(run.agents)} agents returned partial or failed")


def b48(run: Run) -> Findings:
    """Who works on another's output is dispatched after that one's status."""
    for agent in run.agents:
        at = agent.plan.dispatched_at
        if at is None or agent.prompt is None:
            continue
        for other in run.agents:
            if other is agent or f"/{run.base.name}/{other.name}/" not in agent.prompt.text:
                continue
            done = other.report.completed_at
            if done is None or done > at:
                message = f"{agent.name} was dispatched before {other.name} had a status"
                yield warning("B48", message, agent.prompt.file)


def b49(run: Run) -> Findings:
    """The required inputs of a prompt are there, where they are in the run."""
    place = scan.Place(run.root, run.base, {file.name: file for file in run.files})
    for prompt in run.prompts:
        for written in required_inputs(prompt.text):
            name = prompt.agent or schema.SHARED
            path = scan.resolve(written, name, place)
            if path and scan.relative_name(path, run.root) not in place.files:
                yield warning("B49", f"the required input {written} does not exist", prompt.file)


def required_inputs(text: str) -> list[str]:
    """The paths that a prompt lists as required inputs."""
    return [found.strip() for found in _INPUT.findall(text)]


def dispatches(run: Run) -> list[dict[str, object]]:
    """The dispatches of the manifest, [] where there is none."""
    return schema.objects_of(schema.value_of(run.manifest).get("agents"))


def _file(run: Run) -> File | None:
    return run.manifest.file if run.manifest else None


RUN_RULES = (b36, b37, b38, b39, b40, b41, b42, b43, b44, b45, b46, b47, b48, b49)
_KEYS = frozenset({"agent", "task_id", "status", "completed_at", "outputs"})
_OURS = frozenset({"errors", "notes", "summary", "started_at", "attempt"})
_SLACK = timedelta(seconds=schema.TORN_SECONDS)


def b01(run: Run) -> Findings:
    """A status file is a JSON object; one that is still being written is let be."""
    for agent in run.agents:
        for record in agent.records:
            young = run.now - record.file.changed < _SLACK
            if record.value is None and not young:
                yield error("B01", f"the status file {record.problem}", record.file)


def b02(run: Run) -> Findings:
    """The required keys stand in it."""
    for agent, file in _read_status(run):
        for key in ("agent", "status"):
            if key not in agent.value:
                yield error("B02", f"the status file lacks {key}", file)
        for key in ("task_id", "completed_at", "outputs"):
            if key not in agent.value:
                yield warning("B02", f"the status file lacks {key}", file)


def b03(run: Run) -> Findings:
    """The status is success, partial or failure."""
    for agent, file in _read_status(run):
        word = agent.value.get("status")
        if word is None:
            continue
        if not agent.outcome:
            yield error("B03", f"the status {word!r} is not success, partial or failure", file)
        elif word != agent.outcome:
            yield warning("B03", f"the status {word!r} is read as {agent.outcome}", file)


def b04(run: Run) -> Findings:
    """The agent is the one whose workspace it is."""
    for agent, file in _read_status(run):
        said = agent.value.get("agent")
        if agent.report.agent in {each.name for each in run.agents} - {agent.name}:
            yield error(
                "B04", f"{said} wrote its status file into the workspace of {agent.name}", file
            )
        elif said is not None and said != agent.name:
            yield error(
                "B04", f"it names the agent {said!r} in the workspace of {agent.name}", file
            )


def b05(run: Run) -> Findings:
    """The time is ISO 8601 with an offset, and not in the future."""
    for agent, file in _read_status(run):
        said = agent.value.get("completed_at")
        if said is None:
            continue
        at = agent.report.completed_at
        if at is None:
            yield warning("B05", f"completed_at {said!r} is not an ISO 8601 time", file)
        elif not re.search(r"(Z|[+-]\d\d:?\d\d)$", str(said)):
            yield warning("B05", f"completed_at {said!r} has no offset from UTC", file)
        elif at > run.now + timedelta(minutes=1):
            yield warning("B05", f"completed_at {said!r} is in the future", file)


def b06(run: Run) -> Findings:
    """Listed outputs are there."""
    make = {schema.SUCCESS: error, schema.PARTIAL: warning, schema.FAILURE: advice}
    for agent, file, listed in _outputs(run):
        if listed.file is None and agent.outcome:
            message = f"{agent.outcome}, but the output {listed.written} does not exist"
            yield make[agent.outcome]("B06", message, file)


def b07(run: Run) -> Findings:
    """Output paths are absolute."""
    for _, file, listed in _outputs(run):
        if listed.relative:
            yield warning("B07", f"the output {listed.written!r} is not an absolute path", file)


def b08(run: Run) -> Findings:
    """Outputs lie in the agent's own workspace."""
    for agent, file, listed in _outputs(run):
        if listed.owner == agent.name or not listed.written:
            continue
        if listed.path is None and listed.file is None and not listed.relative:
            yield error("B08", f"the output {listed.written} is outside the run", file)
        elif listed.owner:
            yield error(
                "B08", f"the output {listed.written} is in the workspace of {listed.owner}", file
            )
        else:
            yield error(
                "B08", f"the output {listed.written} is outside the agent's workspace", file
            )
    yield from _seen_outside(run)


def _seen_outside(run: Run) -> Findings:
    """What changed outside an agent's workspace while it worked, as the orchestrator saw it.

    It is no more than a warning where others worked at the same time.
    """
    for agent in run.agents:
        others = agent.plan.outside_while
        tell = warning if others else error
        for name in agent.plan.outside[:50]:
            if name in {each.name for each in run.planted}:
                continue  # B68 speaks of it
            who = " or ".join([agent.name, *others])
            message = f"{name} changed outside its workspace while {who} worked"
            yield tell("B08", message, run.manifest.file if run.manifest else None)


def b09(run: Run) -> Findings:
    """The size estimate is small, medium or large."""
    for _, file, listed in _outputs(run):
        said = listed.item.size_estimate
        if said is not None and not re.search(r"\b(small|medium|large)\b", str(said).lower()):
            yield warning("B09", f"the size estimate {said!r} is not small, medium or large", file)


def b10(run: Run) -> Findings:
    """A success lists an output."""
    for agent, file in _read_status(run):
        if agent.outcome == schema.SUCCESS and agent.value.get("outputs") == []:
            yield error("B10", "success without any output", file)


def b11(run: Run) -> Findings:
    """The status file was written last."""
    for _, file, listed in _outputs(run):
        if listed.file and listed.file.changed > file.changed + _SLACK:
            yield warning("B11", f"{listed.file.name} changed after the status file", file)


def b12(run: Run) -> Findings:
    """There is one status file; two at least agree."""
    for agent in run.agents:
        plain = ("status.json", f"{agent.name}-status.json")
        both = [r for r in agent.records if r.file.path.name in plain]
        if len(both) == 2:
            same = both[0].value == both[1].value
            make = advice if same else error
            yield make(
                "B12", f"two status files that {'agree' if same else 'disagree'}", both[0].file
            )


def b13(run: Run) -> Findings:
    """A success has no empty output."""
    for agent, file, listed in _outputs(run):
        if agent.outcome == schema.SUCCESS and listed.file and listed.file.size == 0:
            yield warning("B13", f"success, but {listed.file.name} is empty", file)


def b14(run: Run) -> Findings:
    """Each output is described."""
    for _, file, listed in _outputs(run):
        if not listed.item.description.strip():
            yield warning("B14", f"the output {listed.written} has no description", file)


def b15(run: Run) -> Findings:
    """Nothing in scratch/ is listed: the orchestrator does not read it."""
    for agent, file, listed in _outputs(run):
        own = f"{run.base.name}/{agent.name}/{schema.SCRATCH}/"
        if listed.file and listed.file.name.startswith(own):
            yield advice("B15", f"the output {listed.file.name} is in the scratch folder", file)


def b16(run: Run) -> Findings:
    """Keys are known ones."""
    for agent, file in _read_status(run):
        for key in sorted(agent.value.keys() - _KEYS - _OURS):
            yield advice("B16", f"the status file has the unknown key {key!r}", file)


def b17(run: Run) -> Findings:
    """Outputs stand where they were written; a moved run's are found by their place in it."""
    moved = [(f, each) for _, f, each in _outputs(run) if each.relocated and each.file]
    for file, listed in moved[:1]:
        more = f", and {len(moved) - 1} more" if len(moved) > 1 else ""
        message = f"the run was moved: {listed.written} was found at its new path{more}"
        yield advice("B17", message, file)


def _read_status(run: Run) -> Iterator[tuple[Agent, File]]:
    for agent in run.agents:
        if agent.status and agent.status.value is not None and not state.unfinished(agent, run):
            yield agent, agent.status.file


def _outputs(run: Run) -> Iterator[tuple[Agent, File, Listed]]:
    for agent, file in _read_status(run):
        for listed in agent.outputs:
            yield agent, file, listed


STATUS_RULES = (
    *(b01, b02, b03, b04, b05, b06, b07, b08),
    *(b09, b10, b11, b12, b13, b14, b15, b16, b17),
)

RULES = (*STATUS_RULES, *RETURN_RULES, *RUN_RULES, *PROMPT_RULES, *INTEGRATION_RULES)


def check(run: Run) -> tuple[Finding, ...]:
    """Every finding of a run, in the order of the rules, with its reason and remedy."""
    return tuple(_whole(finding, run) for rule in RULES for finding in rule(run))


def _whole(finding: Finding, run: Run) -> Finding:
    explanation, remedy = CODES[finding.code]
    action = ACTIONS.get(finding.code)
    whose = about(finding, run) if action else ""
    given = (("agent", whose),) if whose else ()
    return replace(finding, explanation=explanation, remedy=remedy, action=action, given=given)


def about(finding: Finding, run: Run) -> str:
    """The agent of whose workspace, or return, a finding speaks, as forms offer it; "" for none."""
    return next((each.shown for each in run.agents if is_about(finding, each, run)), "")


def is_about(finding: Finding, agent: Agent, run: Run) -> bool:
    """Whether a finding speaks of an agent's workspace, or of its return."""
    own = clean_line(f"{run.base.name}/{agent.name}/")
    back = clean_line(agent.returned.file.name) if agent.returned else "-"
    return (finding.document or "").startswith(own) or finding.document == back


_AGAIN = "Rerun the agent with feedback that names the fault."
_PROMPT = "Name the fault in the agent's next prompt."
_MEND = "Repair the run: acp moves unreadable files aside and rebuilds what it can."
_HARMLESS = "No action needed."

_FILES: dict[str, tuple[str, str]] = {
    "B01": ("An unreadable status file says nothing about its agent.", _AGAIN),
    "B02": ("Agent and task identify the result; the status says how the task ended.", _PROMPT),
    "B03": ("Only success, partial and failure are defined.", _PROMPT),
    "B04": ("A file written into another agent's workspace hides that agent's result.", _AGAIN),
    "B05": ("Without a valid time, the newer status cannot be determined.", _PROMPT),
    "B06": ("A listed file that does not exist cannot be integrated.", _AGAIN),
    "B07": ("A relative path depends on the working folder.", _PROMPT),
    "B08": (
        "Workspaces keep agents from overwriting each other.",
        "Check the file, undo the change, and rerun the agent that owns it.",
    ),
    "B09": ("The size estimate helps to plan the reading of outputs.", _HARMLESS),
    "B10": ("A successful agent must write an output.", _AGAIN),
    "B11": ("The status is written last: an output that changed later may be incomplete.", _AGAIN),
    "B12": ("Two status files that differ cannot both be right.", "Remove the wrong one."),
    "B13": ("An empty output cannot be integrated.", _AGAIN),
    "B14": ("The description explains the purpose of a file.", _PROMPT),
    "B15": ("acp does not read scratch files.", "Move the output out of the scratch folder."),
    "B16": ("Other readers do not know these keys.", _HARMLESS),
    "B17": ("The run has moved since its agents wrote these paths.", _HARMLESS),
    "B20": ("Only the returned object explains missing results.", _AGAIN),
    "B21": ("The orchestrator needs these keys.", _PROMPT),
    "B22": ("Only success, partial and failure are defined.", _PROMPT),
    "B23": ("Without a reason you cannot decide what to do with the result.", _AGAIN),
    "B24": (
        "A success with errors counts as partial.",
        "Read its errors and decide on the result.",
    ),
    "B25": ("The orchestrator reads the summary before the files.", _PROMPT),
    "B26": ("Return and status file must describe the same result.", _AGAIN),
    "B27": ("Return and status file must name the same agent and task.", _AGAIN),
    "B28": ("Both lists must name the same files.", "Check which list is complete."),
    "B29": ("An agent sometimes names a file that it never wrote.", _AGAIN),
    "B30": ("A relative path depends on the working folder.", _PROMPT),
    "B31": ("Role and description identify a task.", _HARMLESS),
    "B32": ("Text around the object makes it ambiguous.", _PROMPT),
}

_RUN: dict[str, tuple[str, str]] = {
    "B36": ("acp does not write to a run with an invalid manifest.", _MEND),
    "B37": ("Only the manifest says which agent does what.", _MEND),
    "B38": ("Until the write is finished, the files disagree.", _MEND),
    "B39": ("Unreadable decisions have no effect.", _MEND),
    "B40": ("One agent overwrote the file of the other.", "Rerun one of them."),
    "B41": ("The second dispatch overwrites files of the first.", "Give it a timestamp."),
    "B42": ("The task_id identifies a result.", "Give each its own task_id."),
    "B43": ("An agent without a workspace writes somewhere else.", "Create the workspace."),
    "B44": (
        "Files alone do not distinguish slow work from a crash.",
        "Keep waiting, or decide on the result.",
    ),
    "B45": ("An output outside the workspaces has no owner.", "Move it to its agent's workspace."),
    "B46": (
        "The manifest lists the agents to wait for.",
        "Add the agent to the manifest, or remove its workspace.",
    ),
    "B47": ("Many failures suggest too many agents or unclear tasks.", _PROMPT),
    "B48": ("The agent worked on input that did not exist yet.", "Rerun the agent."),
    "B49": ("The agent cannot read a required input.", "Provide the file, or change the prompt."),
    "B50": ("An agent takes a placeholder literally.", "Fill in the placeholder."),
    "B51": ("A relative path depends on the working folder.", "Use an absolute path."),
    "B52": ("Agents rely on every section of the template.", "Add the section."),
    "B53": (
        "Agents leave long tasks half done.",
        "Shorten the task to one paragraph, or split it.",
    ),
    "B54": ("Workspaces keep agents from overwriting each other.", "Name the agent's workspace."),
    "B55": (
        "acp sees agents of an agent only in a run of its own, and a manager's agents may not have one.",
        "Allow only agents of the outermost run to launch others.",
    ),
}

_INTEGRATION: dict[str, tuple[str, str]] = {
    "B60": ("The integration lacks a result that needs your decision.", "Decide on the result."),
    "B61": ("The final output lacks what was written later.", "Integrate again."),
    "B62": ("Only the integration status lists what was skipped.", "Finish the integration."),
    "B63": ("It is unknown whether the result was integrated.", "Finish the integration again."),
    "B64": ("Readers must know what is missing.", "List it among the gaps."),
    "B65": ("Only its resolution says which version holds, and why.", "Resolve it."),
    "B66": ("Each category has its own rule; facts are never averaged.", "Resolve it again."),
    "B67": ("Only one final output can be valid.", "Move the others away."),
    "B68": ("Only the orchestrator may write there.", "Check the file, and integrate again."),
}

UNSEEN = "B69"
CODES = _FILES | _RUN | _INTEGRATION | {UNSEEN: UNSEEN_TEXT}

ACTIONS = {
    **dict.fromkeys((code for code, (_, remedy) in CODES.items() if remedy == _AGAIN), RERUN_ACT),
    **dict.fromkeys(("B24", "B44", "B60"), TRIAGE_ACT),
    **dict.fromkeys(("B61", "B62", "B63"), FINISH_ACT),
    "B65": RESOLVE_ACT,
    **dict.fromkeys(("B36", "B37", "B38", "B39"), REPAIR_ACT),
}
"""The action that mends it; its form begins with the agent that is asked about first."""
