"""The check of a project's cycles, and of each rule why it exists and what to do, by its code.

The rules themselves are small functions with their codes: on the state (`of_state`), on what agents
leave behind (`of_files`), on the project's package (`preparation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from acp_core.model import Finding, Severity
from acp_core.protocols.cycle.rules import of_files, of_state, preparation
from acp_core.protocols.cycle.schema import Cycle, Project
from acp_core.protocols.kit.findings import UNSEEN_TEXT, advice

RULES = (
    *of_state.STATE_RULES, *of_state.TIME_RULES, *of_state.ORDER_RULES, *of_state.HUMAN_RULES, *of_state.ITERATION_RULES,
    *of_files.PLAN_RULES, *of_files.RESULT_RULES, *of_files.REPORT_RULES, *of_files.FILE_RULES, *of_files.LOG_RULES,
)  # fmt: skip

SHOWN = 5  # findings of one kind that are listed for one cycle; the rest is counted


def check(project: Project) -> tuple[Finding, ...]:
    """Every finding of every cycle, that which is shown first; no more of a kind than `SHOWN`.

    Of a cycle that is not shown advice is left out.
    """
    selected = project.selected
    found = [*_limited(_of(project, selected))] if selected else []
    for cycle in project.cycles:
        if selected is None or cycle.id != selected.id:
            serious = (each for each in _of(project, cycle) if each.severity is not Severity.ADVICE)
            found += _limited(serious)
    found += (finding for rule in preparation.PREPARATION_RULES for finding in rule(project))
    found += _lost(project)
    return tuple(_explained(finding) for finding in found)


def _explained(finding: Finding) -> Finding:
    explanation, remedy = CODES[finding.code]
    return replace(finding, explanation=explanation, remedy=remedy)


def _of(project: Project, cycle: Cycle) -> Iterator[Finding]:
    for rule in of_state.READING:
        yield from rule(cycle)
    if cycle.value:
        for rule in RULES:
            yield from rule(cycle)
    yield from project.violations.get(cycle.id, ())


def _limited(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The first findings of each code and severity, and how many more there are."""
    kinds: Counter[tuple[str, Severity]] = Counter()
    last: dict[tuple[str, Severity], Finding] = {}
    for finding in findings:
        kind = finding.code, finding.severity
        kinds[kind] += 1
        last[kind] = finding
        if kinds[kind] <= SHOWN:
            yield finding
    for kind, count in kinds.items():
        if count > SHOWN:
            message = f"{count - SHOWN} more findings {kind[0]} not listed"
            yield replace(last[kind], message=message, line=None)


def _lost(project: Project) -> Iterator[Finding]:
    if project.orphans:
        names = ", ".join(project.orphans[:SHOWN])
        message = f"{len(project.orphans)} progress folders have no state file: {names}"
        yield advice("A99", message)


_UNUSED = "Correct it, or prepare the package again; acp ignores a faulty package."
_ORCHESTRATOR = "Let only the orchestrator write the state."
UNSEEN = "A49c"

CODES: dict[str, tuple[str, str]] = {
    "A01": (
        "acp cannot show a cycle with an unreadable state.",
        "Wait for the next write, or rebuild the state from the documents.",
    ),
    "A02": ("The state file has no agents and so describes no cycle.", "Rebuild the state."),
    "A03": (
        "The id in a state must match its file name; a renamed copy confuses writers.",
        "Correct cycle_id, or the name of the file.",
    ),
    "A04": ("Other tools recognise cycles by the form of their ids.", "No action needed."),
    "A05": (
        "An orchestrator stops at an unknown status.",
        "Use created, running, paused, completed or failed.",
    ),
    "A06": ("Iterations are counted from 0.", "Correct current_iteration."),
    "A07": (
        "More iterations ran than allowed.",
        "Raise max_iterations, or end the cycle.",
    ),
    "A08": ("A cycle has the agents ra, ep, cd and vas.", "Add the missing one as idle."),
    "A09": (
        "The status of an agent decides who runs next.",
        "Use idle, running, waiting, completed or failed.",
    ),
    "A10": (
        "Times must be ISO 8601 with +08:00; acp guesses or ignores others.",
        "Write times such as 2026-01-22T10:05:00+08:00.",
    ),
    "A10z": (
        "The writer marks UTC+8 times with Z; acp reads them as UTC+8.",
        "Write +08:00 instead of Z.",
    ),
    "A11": (
        "An agent acted after the cycle's end or after the last write of the state.",
        "Check who wrote the state last.",
    ),
    "A12": ("An end before its start makes durations meaningless.", _ORCHESTRATOR),
    "A13": (
        "Not every agent counted all iterations; some may not have taken part.",
        "Check whether the documents of that agent are up to date.",
    ),
    "A14": (
        "A completed cycle must have completed_at; others must not.",
        "Set it when the cycle completes, remove it when it resumes.",
    ),
    "A15": (
        "Backslashes separate folders on Windows only.",
        "Write paths with forward slashes.",
    ),
    "A16": (
        "The status says completed, but the phase does not.",
        "Check whether the last phase was really finished.",
    ),
    "A17": (
        "Other agents read the files that an agent lists as written.",
        "Check whether the agent wrote it elsewhere, or not at all.",
    ),
    "A18": (
        "Agents keep writing, but the state is out of date.",
        "Check whether the orchestrator is still running.",
    ),
    "A19": (
        "An agent failed without a report.",
        "Send it feedback, or rerun it.",
    ),
    "A20": (
        "An agent that starts before its dependency has completed works on guesses.",
        "Check whether its result fits what the other delivered.",
    ),
    "A21": (
        "EP depends on RA, CD on EP, VAS on CD; with a cycle no agent can start.",
        "Correct depends_on.",
    ),
    "A22": (
        "ready and can_start are derived from the agents' states; manual edits make them wrong.",
        _ORCHESTRATOR,
    ),
    "A23": (
        "The cycle is not running, but one of its agents is marked running.",
        "Check whether its program is still running, then correct its status.",
    ),
    "A24": (
        "Both work at the same time, although one needs the result of the other.",
        "Let the later one wait, or review its result again.",
    ),
    "A30": (
        "Only a human can make this decision; dependent work waits.",
        "Answer with the number of an option.",
    ),
    "A31": (
        "A blocker stays open until its resolution is recorded.",
        "Resolve it, or send feedback to an agent that can.",
    ),
    "A32": (
        "The cycle is marked completed, but its plan is not.",
        "Extend the cycle, or mark the tasks as done.",
    ),
    "A33": (
        "No test shows that the result works.",
        "Rerun VAS with tests.",
    ),
    "A34": (
        "The cycle is marked completed, but its tests fail.",
        "Extend the cycle, or record the decision to accept the failures.",
    ),
    "A35": (
        "The record must show the options and the choice.",
        "Set chosen_option to one of the options.",
    ),
    "A36": ("The record must show the resolution.", "Write the resolution."),
    "A37": (
        "Unanswered feedback holds up the cycle.",
        "Rerun the agent, or send the feedback to an existing one.",
    ),
    "A38": (
        "An agent should get one message per iteration; several may contradict each other.",
        "Combine the messages into one.",
    ),
    "A39": (
        "The orchestrator reads only the state's blockers and misses this one.",
        "Record it as a blocker, or close it in its file.",
    ),
    "A40": (
        "All versions rise together; a lower one may be outdated.",
        "Check whether that part is up to date.",
    ),
    "A42": ("Two records claim to be the same iteration.", "Correct the number of one."),
    "A43": (
        "Only its record says what happened in an iteration.",
        "Add the missing records.",
    ),
    "A44": ("Each iteration adds its phases again; this is usual.", "No action needed."),
    "A45": (
        "The task was extended, but its history was not.",
        "Add an entry for each extension.",
    ),
    "A46": (
        "The state names a version that the document does not have.",
        "Check which of the two is newer.",
    ),
    "A47": (
        "Earlier versions of a document can no longer be compared.",
        "Copy a document to history/ before rewriting it.",
    ),
    "A48": ("Versions only rise.", "Check who restored the older one."),
    "A49": (
        "Logs are append-only, but earlier lines are lost or changed.",
        "Restore the log from a copy or a recording.",
    ),
    "A49b": (
        "Entries are never deleted from the state, so that decisions stay readable.",
        "Restore the entry from a recording.",
    ),
    "A41": (
        "Rates are percentages; some writers use fractions of 1.",
        "Write 92 for 92 %.",
    ),
    "A50": ("A task waits for a task that does not exist.", "Correct depends_on."),
    "A51": (
        "A task cannot be done before its dependencies.",
        "Check which of the two states is wrong.",
    ),
    "A52": ("Tasks that wait for each other never start.", "Remove one of the dependencies."),
    "A53": ("The plan's task count is wrong: tasks may be missing.", "Correct total_tasks."),
    "A54": ("The critical path contains tasks that are not in the plan.", "Correct it."),
    "A55": (
        "The state and EP's file contain different plans.",
        "Copy the tasks of the newer one into the other.",
    ),
    "A56": (
        "Efforts are small, medium or large; tasks pending, in_progress, completed or blocked.",
        "Use one of these words.",
    ),
    "A60": ("The test counts contradict each other.", "Run the tests again."),
    "A61": (
        "The state does not match the results of VAS.",
        "Copy the results of vas/test-results.json into the state.",
    ),
    "A62": (
        "The results are below the minimum: 90 % passed, 80 % covered, unless the cycle sets others.",
        "Extend the cycle, or accept the result as it is.",
    ),
    "A70": (
        "Only its PHASE_RESULT says what an agent did.",
        "Rerun the agent and ask for it.",
    ),
    "A71": ("The report belongs to another agent.", "Check which program ran."),
    "A72": ("A report says success, partial or failed.", "Rerun the agent and ask for it."),
    "A73": ("Other agents need the files and the summary of a report.", "Ask for them."),
    "A74": (
        "A file that the agent reports as written is missing.",
        "Check whether it wrote elsewhere.",
    ),
    "A75": (
        "Without a reason you cannot help.",
        "Ask the agent for its issues and blockers.",
    ),
    "A76": ("The agent reported more than once.", "No action needed: the last report counts."),
    "A77": (
        "The published orchestrator says completed whatever an agent reported.",
        "Trust the report; rerun the agent.",
    ),
    "A80": (
        "Readers skip a line that is not a JSON object.",
        "Append whole lines only, each ended by a line feed.",
    ),
    "A81": (
        "Agents look up discoveries by type and key; they will miss these or find them twice.",
        "Use the types of the specification with their data.",
    ),
    "A90": ("The orchestrator silently ignores a package that is not ready.", _UNUSED),
    "A91": ("The orchestrator silently ignores a package of another project.", _UNUSED),
    "A92": ("The orchestrator silently ignores a poorly described task.", _UNUSED),
    "A93": ("The orchestrator silently ignores a package older than a day.", _UNUSED),
    "A94": ("The orchestrator silently ignores an incomplete package.", _UNUSED),
    "A95": ("The orchestrator silently ignores a package with such a goal.", _UNUSED),
    "A96": (
        "Each agent may write only its own folder; a second writer undoes the first one's work.",
        "Ask the owner for the change, by feedback.",
    ),
    "A97": (
        "A link may lead out of the cycle, so acp does not follow it.",
        "Replace the link with the file.",
    ),
    "A98": (
        "acp cannot show an unreadable file.",
        "Let the agent write it again.",
    ),
    "A99": (
        "The state was deleted, or another tool never wrote one.",
        "Rebuild the state from the documents, or remove the folder.",
    ),
    UNSEEN: UNSEEN_TEXT,
}
"""Explanation and remedy by code."""
