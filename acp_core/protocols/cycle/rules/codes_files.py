"""Explanation and remedy of the rules on plans, results, files and logs, by code."""

from __future__ import annotations

_UNUSED = "Correct it, or prepare the package anew; a package with a fault is ignored."

FILES: dict[str, tuple[str, str]] = {
    "A41": (
        "Rates are percentages; some writers tell a share of 1.",
        "Write 92 for 92 %.",
    ),
    "A50": ("A task waits for one that does not exist: for ever.", "Correct depends_on."),
    "A51": (
        "A task cannot be done before what it depends on.",
        "Look at which of the two states is wrong.",
    ),
    "A52": ("Tasks that wait for one another never start.", "Cut one of the dependencies."),
    "A53": ("The plan's own count is wrong: tasks may be missing.", "Correct total_tasks."),
    "A54": ("The critical path leads over tasks that are not in the plan.", "Correct it."),
    "A55": (
        "The state and EP's file tell different plans.",
        "Take the tasks of the newer one into the other.",
    ),
    "A56": (
        "Efforts are small, medium or large; tasks pending, in_progress, completed or blocked.",
        "Use one of these words.",
    ),
    "A60": ("The numbers of the tests contradict one another.", "Run the tests again."),
    "A61": (
        "The state does not tell what VAS found.",
        "Take the results of vas/test-results.json into the state.",
    ),
    "A62": (
        "The results are below the minimum: 90 % passed, 80 % covered, unless the cycle says else.",
        "Extend the cycle, or accept it as it is.",
    ),
    "A70": (
        "Without its PHASE_RESULT nobody knows what an agent did.",
        "Run the agent again and ask for it.",
    ),
    "A71": ("The report is that of another agent.", "Look at which program ran."),
    "A72": ("A report says success, partial or failed.", "Run the agent again and ask for it."),
    "A73": ("Others are pointed to the files and the summary of a report.", "Ask for them."),
    "A74": (
        "What the agent says to have written is not there.",
        "Look at whether it wrote elsewhere.",
    ),
    "A75": (
        "Without a reason nobody can help.",
        "Ask the agent for its issues and blockers.",
    ),
    "A76": ("The agent reported more than once.", "It may stay as it is: the last report counts."),
    "A77": (
        "The published orchestrator says completed whatever an agent reported.",
        "Trust the report; run the agent again.",
    ),
    "A80": (
        "A line that is no JSON object is lost for every reader.",
        "Append whole lines only, each ended by a line feed.",
    ),
    "A81": (
        "Agents look up discoveries by type and key; these they will not find, or find twice.",
        "Use the types of the specification with their data.",
    ),
    "A90": ("A package that is not ready is ignored without a word.", _UNUSED),
    "A91": ("A package of another project is ignored without a word.", _UNUSED),
    "A92": ("A task that is described too poorly is ignored without a word.", _UNUSED),
    "A93": ("A package older than a day is ignored without a word.", _UNUSED),
    "A94": ("A package that lacks something is ignored without a word.", _UNUSED),
    "A95": ("A package with such a goal is ignored without a word.", _UNUSED),
    "A96": (
        "Each agent writes its own folder only; a second writer undoes the first one's work.",
        "Ask the owner for the change, by feedback.",
    ),
    "A97": (
        "A link may lead out of the cycle: it is not followed.",
        "Put the file itself there.",
    ),
    "A98": (
        "What cannot be read is missing from all that is shown.",
        "Let the agent write it again.",
    ),
    "A99": (
        "Somebody deleted the state, or a foreign tool never wrote one.",
        "Rebuild the state from the documents, or remove the folder.",
    ),
}
