"""Why each rule on the state, its order and its people exists, and what to do, by code.

Those on plans, results, files and logs stand in `codes_files`.
"""

from __future__ import annotations

from acp_core.protocols.cycle.rules.codes_files import FILES
from acp_core.protocols.kit.findings import UNSEEN_TEXT

_ORCHESTRATOR = "Let only the orchestrator write the state."

_STATE: dict[str, tuple[str, str]] = {
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
}

UNSEEN = "A49c"
CODES: dict[str, tuple[str, str]] = _STATE | FILES | {UNSEEN: UNSEEN_TEXT}
"""Explanation and remedy by code."""
