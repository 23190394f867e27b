"""Explanation and remedy of advice, by code."""

from __future__ import annotations

_APPEND = "Let all participants write with `acp append`."

ADVICE: dict[str, tuple[str, str]] = {
    "ACP901": (
        "A line contains a key twice; readers disagree about which value counts.",
        _APPEND,
    ),
    "ACP902": ("A field of an event does not have the form that readers expect.", _APPEND),
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
        "The last event is complete, but its line has no newline: the next writer would append to the same line.",
        "Run `acp repair` before the next append.",
    ),
    "ACP907": (
        "A completed collaboration has ended; no participant reads later events.",
        "Continue in a new folder with `acp continue`.",
    ),
    "ACP908": (
        "Readiness was passed twice: something changed in between, or an agent repeated itself.",
        "Look at what changed since it was passed first.",
    ),
    "ACP910": ("The list contains a participant twice.", "Remove one in protocol.json."),
    "ACP911": (
        "This id contains characters that break review headings, paths or terminals.",
        "Next time use letters, digits, `.`, `_` and `-`.",
    ),
    "ACP912": (
        "Other tools read the gates as a list of texts.",
        "Write completionGates as a list of texts.",
    ),
    "ACP913": (
        "The target of the link can change unnoticed, and acp does not show it.",
        "Put the file itself into the folder.",
    ),
    "ACP914": (
        "Some readers take the whole log for one line.",
        "Write each event with a newline at its end, as `acp append` does.",
    ),
    "ACP920": (
        "A writer was interrupted after it wrote the log. acp shows the state from the log.",
        "Run `acp repair`; the next append also fixes the file.",
    ),
    "ACP921": (
        (
            "The log is append-only, but events that acp has read were edited, truncated or "
            "replaced. acp has read the log again."
        ),
        "Compare the log with a copy; participants that read it earlier know a different history.",
    ),
    "ACP922": (
        "An invalid event stays invalid, because earlier events are never rewritten.",
        "Append blocked with the reason; then continue in a new folder with `acp continue`.",
    ),
    "ACP930": (
        (
            "Only `- [resolved]`, `- [deferred_nonblocking]`, `- [blocking]` and `- [unresolved]` "
            "count, written exactly so."
        ),
        "Write the line in that form.",
    ),
    "ACP931": (
        "White space after the word includes line ends, so the next line counts as the text.",
        "Write the text on the same line.",
    ),
    "ACP932": (
        "Free text about a blocker does not block the collaboration.",
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
        "Participants have accepted decisions, but decisions.md contains none.",
        "Write the decisions into decisions.md.",
    ),
    "ACP937": (
        "Gates are compared letter by letter; this line is almost the required one.",
        "Write the line `- [x] ` with exactly the required text.",
    ),
    "ACP940": (
        (
            "The heading names a seq but does not have the form "
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
        "Write the proposal, and ask the reviewers to read it again.",
    ),
    "ACP952": (
        "No decision can be accepted while a question is unresolved.",
        "Classify every question; no further event is needed for it.",
    ),
    "ACP953": (
        "The specification keeps the owner, but every tool takes the author of such a proposal as the owner.",
        "Append blocked; in the new folder only the owner submits the proposal.",
    ),
    "ACP954": (
        "NaN and Infinity are not JSON: strict readers reject the whole line.",
        "Leave the value out, or write it as a text.",
    ),
    "ACP955": (
        "An event cannot have an earlier time than the previous one, so all later events have a future time, too.",
        "Set the clock of the machine that wrote it.",
    ),
    "ACP945": (
        "A section of the conclusion is empty.",
        "Fill in the section, or write that there is nothing to add.",
    ),
    "ACP956": (
        "Agents read text that is invisible to people, and may follow it as an instruction.",
        "Remove these characters, and find out who wrote them.",
    ),
    "ACP957": (
        "The other host was first: its text is the document now, and the text of this host is kept beside it.",
        "Take yours with `acp sync --mine NAME`, keep the other with `--theirs NAME`, or merge both with `--merge NAME`.",
    ),
    "ACP958": (
        "A script appended to the log without acp while another host appended: its events could not keep their numbers.",
        "Append them again with `acp sync --again`, or drop them with `acp sync --theirs events.jsonl`.",
    ),
}
