"""Why each rule on the state, its order and its people exists, and what to do, by code.

Those on plans, results, files and logs stand in `codes_files`.
"""

from __future__ import annotations

from acp_core.protocols.cycle.rules.codes_files import FILES
from acp_core.protocols.kit.findings import UNSEEN_TEXT

_ORCHESTRATOR = "Let the orchestrator write the state; nobody else."

_STATE: dict[str, tuple[str, str]] = {
    "A01": (
        "Nothing can be told of a cycle whose state cannot be read.",
        "Wait for the next write, or rebuild the state from the documents.",
    ),
    "A02": ("The state file holds no agents: there is no cycle in it.", "Rebuild the state."),
    "A03": (
        "The id in a state is the name of its file; a copy under another name confuses writers.",
        "Correct cycle_id, or the name of the file.",
    ),
    "A04": ("Other tools find cycles by the form of their ids.", "It may stay as it is."),
    "A05": (
        "An orchestrator stops at a status that it does not know.",
        "Use created, running, paused, completed or failed.",
    ),
    "A06": ("Iterations are counted from 0.", "Correct current_iteration."),
    "A07": (
        "More iterations ran than were allowed.",
        "Raise max_iterations, or end the cycle.",
    ),
    "A08": ("A cycle has the agents ra, ep, cd and vas.", "Add the missing one as idle."),
    "A09": (
        "The status of an agent decides who runs next.",
        "Use idle, running, waiting, completed or failed.",
    ),
    "A10": (
        "Times are ISO 8601 with +08:00; others are guessed, or lost.",
        "Write times such as 2026-01-22T10:05:00+08:00.",
    ),
    "A10z": (
        "The writer puts a Z behind the time of UTC+8; it is read as what was meant.",
        "Write +08:00 in place of Z.",
    ),
    "A11": (
        "An agent did something after the state says that all was over, or was last written.",
        "Look at who wrote the state last.",
    ),
    "A12": ("An end before its start makes durations meaningless.", _ORCHESTRATOR),
    "A13": (
        "Not every agent counted all iterations; some may not have taken part.",
        "Look at whether the documents of that agent are up to date.",
    ),
    "A14": (
        "When a cycle ended is told by completed_at, and only then.",
        "Set it when the cycle completes, remove it when it goes on.",
    ),
    "A15": (
        "Backslashes part folders on one kind of machine only.",
        "Write paths with forward slashes.",
    ),
    "A16": (
        "The status says completed, the phase does not.",
        "Look at whether the last phase was really finished.",
    ),
    "A17": (
        "What an agent lists as written is what others are sent to read.",
        "Look at whether the agent wrote it elsewhere, or not at all.",
    ),
    "A18": (
        "Agents write on, and the state does not follow: what it says is old.",
        "Look at whether the orchestrator is still alive.",
    ),
    "A19": (
        "An agent failed, and nobody was told.",
        "Send it feedback, or run it again.",
    ),
    "A20": (
        "Who starts before the one that it depends on has completed works on guesses.",
        "Look at whether its result fits what the other delivered.",
    ),
    "A21": (
        "EP depends on RA, CD on EP, VAS on CD; in a circle nobody can start.",
        "Correct depends_on.",
    ),
    "A22": (
        "ready and can_start follow from the agents' states; by hand they become wrong.",
        _ORCHESTRATOR,
    ),
    "A23": (
        "The cycle does not run, but one of its agents is said to.",
        "Look at whether its program still lives; then correct its status.",
    ),
    "A24": (
        "Both work at the same time, although one needs what the other delivers.",
        "Let the later one wait, or look at its result again.",
    ),
    "A30": (
        "Only a human can decide it; what follows from it is left open.",
        "Answer it by the number of an option.",
    ),
    "A31": (
        "A blocker stays open until somebody says how it was resolved.",
        "Resolve it, or send feedback to the agent that can.",
    ),
    "A32": (
        "The cycle is said to be completed; its plan says otherwise.",
        "Extend the cycle, or say of the tasks that they are done.",
    ),
    "A33": (
        "Nothing shows that what was made works.",
        "Run VAS again, with tests.",
    ),
    "A34": (
        "The cycle is said to be completed; its tests say otherwise.",
        "Extend the cycle, or record the decision to accept the failures.",
    ),
    "A35": (
        "Later readers must see what was chosen, among what.",
        "Set chosen_option to one of the options.",
    ),
    "A36": ("Later readers must see how it was resolved.", "Write the resolution."),
    "A37": (
        "Feedback that nobody acts on holds up the cycle.",
        "Run the agent again, or send the feedback to one that there is.",
    ),
    "A38": (
        "An agent gets one message in an iteration; several contradict one another.",
        "Put what is asked into one message.",
    ),
    "A39": (
        "The orchestrator looks at the state's blockers; it does not see this one.",
        "Record it as a blocker, or close it where it stands.",
    ),
    "A40": (
        "All versions rise together; one that stayed behind may be outdated.",
        "Look at whether that part is up to date.",
    ),
    "A42": ("Two records claim to be the same iteration.", "Correct the number of one."),
    "A43": (
        "What happened in an iteration is told by its record.",
        "Add the records that are missing.",
    ),
    "A44": ("Each iteration adds its phases anew; that is usual.", "It may stay as it is."),
    "A45": (
        "The task grew, and its history did not follow.",
        "Add an entry for each extension.",
    ),
    "A46": (
        "The state refers to a version of the document that does not stand there.",
        "Look at which of the two is newer.",
    ),
    "A47": (
        "What a document said before can no longer be compared.",
        "Copy a document to history/ before rewriting it.",
    ),
    "A48": ("Versions only rise.", "Look at who put the older one back."),
    "A49": (
        "Logs are only appended to: lines that stood there are lost or altered.",
        "Get the log back from a copy, or from a recording.",
    ),
    "A49b": (
        "Nothing is deleted from the state: what was decided must stay to be read.",
        "Get the entry back from a recording.",
    ),
}

UNSEEN = "A49c"
CODES: dict[str, tuple[str, str]] = _STATE | FILES | {UNSEEN: UNSEEN_TEXT}
"""Explanation and remedy by code."""
