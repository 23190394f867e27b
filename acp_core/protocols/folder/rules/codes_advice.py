"""Explanation and remedy of advice, by code."""

from __future__ import annotations

_APPEND = "Let all participants write with `acp append`."

ADVICE: dict[str, tuple[str, str]] = {
    "ACP901": (
        "A key stands twice in a line: readers differ in which one they believe.",
        _APPEND,
    ),
    "ACP902": ("A field of an event has not the form that readers expect.", _APPEND),
    "ACP903": (
        "The summary is what people read in the timeline: one short sentence.",
        "Put long text into a document and name it in `doc`.",
    ),
    "ACP904": (
        "`doc` is a path inside the collaboration's folder; this one is never opened.",
        "Name a document of the collaboration.",
    ),
    "ACP905": (
        "Times are written in UTC with whole seconds, so that they compare as text too.",
        _APPEND,
    ),
    "ACP906": (
        "The last event is whole, but its line is not ended: the next writer would glue its own to it.",
        "Run `acp repair` before the next append.",
    ),
    "ACP907": (
        "A completed collaboration has ended; nobody will look at what comes after.",
        "Go on in a new folder with `acp continue`.",
    ),
    "ACP908": (
        "Readiness was passed twice: something changed in between, or an agent repeated itself.",
        "Look at what changed since it was passed first.",
    ),
    "ACP910": ("A participant stands twice in the list.", "Remove one in protocol.json."),
    "ACP911": (
        "This id holds signs that break review headings, paths or terminals.",
        "Next time use letters, digits, `.`, `_` and `-`.",
    ),
    "ACP912": (
        "Other tools read the gates as a list of texts.",
        "Write completionGates as a list of texts.",
    ),
    "ACP913": (
        "What it leads to can change without anything changing here, and is not shown.",
        "Put the file itself into the folder.",
    ),
    "ACP914": (
        "Some readers take the whole log for one line.",
        "Write each event with a newline at its end, as `acp append` does.",
    ),
    "ACP920": (
        "A writer was interrupted after it wrote the log. What is shown here follows from the log.",
        "Run `acp repair`, or let the next append mend it.",
    ),
    "ACP921": (
        (
            "The log is append-only, but what was read before no longer stands there: somebody "
            "edited, truncated or replaced it. Everything was read again."
        ),
        "Compare it with a copy; participants who have read it before know another history.",
    ),
    "ACP922": (
        "What is wrong with an event stays wrong, since earlier events are never rewritten.",
        "Append blocked with the reason; then `acp continue` goes on in a new folder.",
    ),
    "ACP930": (
        (
            "Only `- [resolved]`, `- [deferred_nonblocking]`, `- [blocking]` and `- [unresolved]` "
            "count, written exactly so."
        ),
        "Write the line in that form.",
    ),
    "ACP931": (
        "White space after the word may go over line ends, so that the next line counts as its text.",
        "Write the text on the same line.",
    ),
    "ACP932": (
        "Free text about a blocker stops nobody.",
        "Mark it `- [blocking]`, or say that there is none.",
    ),
    "ACP933": ("A reason that is empty explains nothing.", "Write the reason on the same line."),
    "ACP934": (
        "The letters TBD anywhere in a classified item make it count as unresolved.",
        "Reword the item.",
    ),
    "ACP935": (
        "Decisions were accepted although no question was ever listed.",
        "List the open questions in readiness.md, each with its class.",
    ),
    "ACP936": (
        "Participants have accepted decisions that are written down nowhere.",
        "Write the decisions into decisions.md.",
    ),
    "ACP937": (
        "Gates are compared letter by letter; this line is almost the required one.",
        "Write the line `- [x] ` with exactly the required text.",
    ),
    "ACP940": (
        (
            "The heading speaks of a seq but is not of the form "
            "`## <time> - <participant> - seq <number>`, so that it matches no review."
        ),
        "Write it in that form if it is a review's heading.",
    ),
    "ACP941": ("Two reviews claim one number.", "Correct the number of one of them."),
    "ACP942": (
        "Only headings of level 2 (`## `) count as the required sections.",
        "Change the heading's level.",
    ),
    "ACP943": (
        "Only `- [proceed]`, `- [do_not_proceed]`, `- [defer]` and `- [blocked]` with a text count.",
        "Write the outcome in that form.",
    ),
    "ACP944": (
        "Inside a longer word the placeholder is not seen by the rule.",
        "Finish that place.",
    ),
    "ACP950": (
        "The deliverable changed after its draft was declared, or the digest was never its own.",
        "Append deliverable_revised once it is what it should be.",
    ),
    "ACP951": (
        "Reviewers were asked to read a proposal that says nothing.",
        "Write the proposal, and say so to the reviewers.",
    ),
    "ACP952": (
        "No decision can be accepted while a question is unresolved.",
        "Classify every question; no further event is needed for it.",
    ),
    "ACP953": (
        "The specification keeps the owner; every tool derives the author of such a proposal instead.",
        "Append blocked; in the new folder only the owner submits the proposal.",
    ),
    "ACP954": (
        "NaN and Infinity are no JSON: strict readers take the whole line for damage.",
        "Leave the value out, or write it as a text.",
    ),
    "ACP955": (
        "No event can be dated before the one that it follows, so that all that follow lie ahead, too.",
        "Set the clock of the machine that wrote it.",
    ),
    "ACP945": (
        "A section of the conclusion is empty.",
        "Fill it in, or say that there is nothing.",
    ),
    "ACP956": (
        "Agents read text that is invisible to people, and may follow it as an instruction.",
        "Remove these characters, and find out who wrote them.",
    ),
}
