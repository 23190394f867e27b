"""Explanation and remedy of the rules on plans, results, files and logs, by code."""

from __future__ import annotations

_UNUSED = "Correct it, or prepare the package again; acp ignores a faulty package."

FILES: dict[str, tuple[str, str]] = {
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
}
