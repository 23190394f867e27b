"""Explanation and remedy of the rules of dialect v1, by code."""

from __future__ import annotations

_REPAIR = "Run `acp repair` on the folder: acp shows the change before making it."
_NEVER = "Earlier events are never rewritten: append a corrective event, or append blocked and continue in a new folder with `acp continue`."
_EDIT = "Correct it in protocol.json; only phase, owner and waitingFor follow from the log."

PROTOCOL: dict[str, tuple[str, str]] = {
    # files
    "ACP101": (
        "A file that every participant needs is missing.",
        "Create the file; after an interrupted start, `acp repair` does this.",
    ),
    "ACP102": (
        "The folder contains a file of an earlier protocol; agents could write to it instead of the log.",
        "Move it out of the folder.",
    ),
    "ACP103": (
        "A document cannot be read, so acp cannot check its content.",
        "Make it a regular UTF-8 text file of at most 4 MiB that you may read.",
    ),
    # protocol.json
    "ACP110": (
        "protocol.json is not a JSON object, or cannot be read: no tool can continue.",
        _REPAIR,
    ),
    "ACP111": (
        "Without protocol.json, the objective, the participants and the gates are unknown.",
        "Restore it from a copy, or run `acp repair`; `acp init` starts a new collaboration.",
    ),
    "ACP112": (
        "The recorded phase is not a phase of the protocol.",
        _REPAIR,
    ),
    "ACP113": (
        "Agents need to know what the collaboration must decide or produce.",
        _EDIT,
    ),
    "ACP114": ("A collaboration needs at least one participant.", _EDIT),
    "ACP115": (
        "Without completion gates, it is undefined when the collaboration is complete.",
        _EDIT,
    ),
    "ACP116": (
        "This schema version has no version field; other tools refuse the folder.",
        "Remove the key `version` from protocol.json.",
    ),
    "ACP117": (
        "A gate names a file that must not exist.",
        "Reword the gate in protocol.json to name a file of the protocol.",
    ),
    "ACP118": (
        "protocol.json does not list whose turn it is, so agents wait forever.",
        _REPAIR,
    ),
    "ACP119": ("protocol.json does not say who owns the proposal.", _REPAIR),
    "ACP120": (
        "A participant without an id cannot act.",
        'Write each participant as {"id": "name"}.',
    ),
    "ACP121": (
        "The list has too many participants; acp uses only the first ones.",
        "Check protocol.json: the list is probably damaged.",
    ),
    "ACP122": ("A gate must be a text.", _EDIT),
    "ACP150": (
        (
            "The recorded phase differs from the phase in the log. The log decides; agents "
            "that trust protocol.json wait for the wrong event."
        ),
        _REPAIR,
    ),
    "ACP151": (
        (
            "protocol.json differs from the state in the log. The log decides; agents that "
            "trust protocol.json wait for the wrong participant."
        ),
        _REPAIR,
    ),
    # the log's lines
    "ACP201": (
        "A line of the log is not JSON: every reader stops there.",
        (
            "If it is the last line, `acp repair` fixes it. Otherwise append blocked, and "
            "continue in a new folder with `acp continue`."
        ),
    ),
    "ACP202": ("Each line of the log must be one JSON object.", _NEVER),
    "ACP203": (
        "A line is too long, or nested too deeply, to be an event.",
        "Put long text into a document and name it in `doc`.",
    ),
    "ACP204": (
        (
            "A line contains a character that many readers treat as a line end: they can no longer read the log."
        ),
        "Append blocked, and continue in a new folder with `acp continue`; `acp append` writes such characters safely.",
    ),
    "ACP205": (
        "The log holds no event. Either the start was interrupted or the log was emptied.",
        "Restore events.jsonl from a copy, or run `acp init --resume`.",
    ),
    "ACP206": (
        "The log cannot be read.",
        "Make events.jsonl a regular file that you may read.",
    ),
    "ACP207": (
        "The last line is an incomplete event: its writer was interrupted.",
        _REPAIR,
    ),
    "ACP208": (
        "The log is too large for a collaboration; acp does not read the rest.",
        "Find the program that writes so much to it, and stop it; then continue in a new folder with `acp continue`.",
    ),
    "ACP210": ("An event lacks a field that every event must have.", _NEVER),
    "ACP211": (
        "The protocol has no event with this name; its effect on the state is unknown.",
        _NEVER,
    ),
    "ACP212": (
        "The author of an event is not in the list of participants.",
        "Agents must use an id from protocol.json; the list is fixed at the start.",
    ),
    "ACP213": (
        "A reply must name an earlier event.",
        _NEVER,
    ),
    "ACP214": (
        "The time of an event cannot be understood, or names no zone: nothing can be measured from it.",
        "Append events with `acp append`: it writes the time.",
    ),
    "ACP215": (
        (
            "The numbers of the events must be 1, 2, 3 and so on. A duplicate means that two "
            "participants wrote at the same time without a lock; a gap means that lines are "
            "missing."
        ),
        (
            "Append blocked and continue in a new folder with `acp continue`; let all "
            "participants write with `acp append`."
        ),
    ),
    "ACP216": (
        "Every event but the first answers an earlier one.",
        _NEVER,
    ),
    "ACP217": (
        "Times must not go backward: a clock is wrong, or lines were inserted.",
        "Set the clocks right; `acp append` never writes a time before the last one.",
    ),
    "ACP290": (
        "acp does not list all findings of this kind.",
        "Look at the first ones: the others probably have the same cause.",
    ),
    # reviews
    "ACP301": (
        "The log has a review, but review.md has no heading with its number.",
        (
            "Add the heading `## <time> - <participant> - seq <number>` to review.md; `acp repair` "
            "does so, and `acp append ... --review-file FILE` writes both at once."
        ),
    ),
    "ACP302": (
        "review.md contains a review that is not in the log: its author has not appended the event.",
        "Append review_submitted, or correct the number in the heading.",
    ),
    "ACP303": (
        (
            "The heading must have the number of the review's own event, not of the event that the review answers."
        ),
        "Correct the number in the heading.",
    ),
    "ACP304": (
        "The heading and the event name different participants.",
        "Correct the name in the heading.",
    ),
    # readiness.md
    "ACP310": (
        "readiness.md marks an item as blocking; the collaboration cannot continue until the item is resolved.",
        "Resolve the item and mark it [resolved], or append blocked.",
    ),
    "ACP311": (
        "A question is not classified: it is [unresolved], or its text still says TBD.",
        "Mark it [resolved], [deferred_nonblocking] with a reason, or [blocking].",
    ),
    "ACP312": (
        "A deferred question must have a reason.",
        "Add `Reason: ...` to the same line.",
    ),
    "ACP313": (
        "The last box of readiness.md is not checked.",
        "When everything is in order, write the line `- [x] Ready to implement`.",
    ),
    "ACP314": (
        "The collaboration may end only when every gate is met.",
        "Check each gate in readiness.md with a line `- [x] ` and the gate's exact text.",
    ),
    "ACP315": (
        "A deferred question should have a reason; it must have one before decisions are accepted.",
        "Add `Reason: ...` to the same line.",
    ),
    # conclusion.md
    "ACP320": (
        "The conclusion must answer all of the protocol's questions.",
        "Add the missing headings (level 2) to conclusion.md.",
    ),
    "ACP321": (
        "The conclusion must name exactly one outcome: proceed, do_not_proceed or defer.",
        "Leave one line such as `- [proceed] Why.` and remove other outcome lines.",
    ),
    "ACP322": (
        "A collaboration whose outcome is blocked is not complete.",
        "Write the outcome that was reached, or append blocked.",
    ),
    "ACP323": (
        "The words TBD, TODO, unresolved and 待定 mark unfinished text anywhere in the file.",
        "Finish or reword those places.",
    ),
    # the state machine
    "ACP401": (
        "The event is not allowed in its phase. The state after it is uncertain.",
        _NEVER,
    ),
    "ACP402": (
        "The author of the event did not have the turn. The state after it is uncertain.",
        _NEVER,
    ),
    "ACP403": ("A collaboration is started once, by its first event.", _NEVER),
    "ACP404": (
        "The author of the first event must be a participant.",
        "Correct the list of participants in protocol.json.",
    ),
    "ACP405": (
        "A proposal needs a reviewer.",
        "Start a collaboration with at least two participants.",
    ),
    "ACP406": (
        "Decisions may be accepted only after the owner has classified all questions.",
        "The owner classifies readiness.md and appends question_classified; then all accept again.",
    ),
    "ACP407": (
        "A collaboration ends only after readiness was passed.",
        "Append readiness_passed first.",
    ),
    "ACP408": (
        "The completed event must name the conclusion.",
        "Append completed with doc conclusion.md.",
    ),
    "ACP409": (
        "In this schema version, a proposal needs a draft of the primary deliverable.",
        "Draft it and append deliverable_drafted first.",
    ),
    "ACP410": (
        "Readiness can be passed only on a deliverable that no longer changes.",
        "Append deliverable_frozen first.",
    ),
    "ACP411": (
        "A frozen deliverable must not change.",
        "Continue in a new folder with `acp continue` if it must change.",
    ),
    "ACP412": ("A deliverable is frozen once.", _NEVER),
}
