"""Explanation and remedy of the rules of dialect v1, by code."""

from __future__ import annotations

_REPAIR = "Run `acp repair` on the folder: it shows the change before it makes it."
_NEVER = "Earlier events are never rewritten: append a corrective event, or append blocked and go on in a new folder with `acp continue`."
_EDIT = "Correct it in protocol.json; only phase, owner and waitingFor follow from the log."

PROTOCOL: dict[str, tuple[str, str]] = {
    # files
    "ACP101": (
        "A file that every participant expects is not there.",
        "Make the file; `acp repair` does so for a start that was interrupted.",
    ),
    "ACP102": (
        "A file of an earlier protocol is there; agents would write to it instead of the log.",
        "Move it out of the folder.",
    ),
    "ACP103": (
        "A document cannot be read, so that nobody can say what stands in it.",
        "Make it a regular UTF-8 text file of at most 4 MiB that you may read.",
    ),
    # protocol.json
    "ACP110": (
        "protocol.json is not a JSON object, or cannot be read: no tool can go on.",
        _REPAIR,
    ),
    "ACP111": (
        "Without protocol.json nobody knows the objective, the participants and the gates.",
        "Restore it from a copy, or run `acp repair`; `acp init` starts a new collaboration.",
    ),
    "ACP112": (
        "The recorded phase is none of the protocol's phases.",
        _REPAIR,
    ),
    "ACP113": (
        "Agents need to know what the collaboration must decide or produce.",
        _EDIT,
    ),
    "ACP114": ("A collaboration needs at least one participant.", _EDIT),
    "ACP115": (
        "Without completion gates nobody can say when the collaboration is done.",
        _EDIT,
    ),
    "ACP116": (
        "This dialect has no version field; other tools refuse the folder.",
        "Remove the key `version` from protocol.json.",
    ),
    "ACP117": (
        "A gate speaks of a file that must not exist.",
        "Reword the gate in protocol.json to name a file of the protocol.",
    ),
    "ACP118": (
        "protocol.json does not say who is waited for, so that agents wait for ever.",
        _REPAIR,
    ),
    "ACP119": ("protocol.json does not say who owns the proposal.", _REPAIR),
    "ACP120": (
        "A participant without an id cannot act.",
        'Write each participant as {"id": "name"}.',
    ),
    "ACP121": (
        "So many participants cannot take turns; only the first ones are looked at.",
        "Check protocol.json: the list is probably damaged.",
    ),
    "ACP122": ("A gate must be a text that can be checked off.", _EDIT),
    "ACP150": (
        (
            "The recorded phase is not the one that the log leads to. The log decides; agents that "
            "trust protocol.json wait for the wrong thing."
        ),
        _REPAIR,
    ),
    "ACP151": (
        (
            "What protocol.json records is not what the log leads to. The log decides; agents that "
            "trust protocol.json wait for the wrong one."
        ),
        _REPAIR,
    ),
    # the log's lines
    "ACP201": (
        "A line of the log is not JSON: every reader stops there.",
        "If it is the last line, `acp repair` fixes it. Otherwise append blocked, and go on in a new folder with `acp continue`.",
    ),
    "ACP202": ("Each line of the log must be one JSON object.", _NEVER),
    "ACP203": (
        "A line is too long, or nested too deeply, to be an event.",
        "Put long text into a document and name it in `doc`.",
    ),
    "ACP204": (
        (
            "A character that many readers take for a line end stands in a line: they can never "
            "read the log again."
        ),
        "Append blocked, and go on in a new folder with `acp continue`; `acp append` writes such characters safely.",
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
        "The last line is half an event: its writer was interrupted.",
        _REPAIR,
    ),
    "ACP208": (
        "The log is far larger than any collaboration's; the rest of it is not looked at.",
        "Look at what writes to it; append blocked, and go on in a new folder with `acp continue`.",
    ),
    "ACP210": ("An event lacks a field that every event must have.", _NEVER),
    "ACP211": (
        "The protocol has no event of this name; nobody knows what it means for the state.",
        _NEVER,
    ),
    "ACP212": (
        "Somebody who is not in the list of participants has written to the log.",
        "Agents must use an id from protocol.json; the list is fixed at the start.",
    ),
    "ACP213": (
        "An answer must name an event that was there before it.",
        _NEVER,
    ),
    "ACP214": (
        "The time of an event cannot be understood, or names no zone: nothing can be measured from it.",
        "Append events with `acp append`: it writes the time.",
    ),
    "ACP215": (
        (
            "The numbers of the events must be 1, 2, 3 and so on. A repeated number means that two "
            "participants wrote at once without a lock; a gap that lines are gone."
        ),
        "Append blocked and go on in a new folder with `acp continue`; let all participants write with `acp append`.",
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
        "There is more of the same kind than is worth listing.",
        "Look at the first ones: the others probably have the same cause.",
    ),
    # reviews
    "ACP301": (
        "A review was announced in the log, but review.md has no heading that bears its number.",
        (
            "Add the heading `## <time> - <participant> - seq <number>` to review.md; `acp repair` "
            "does so, and `acp append --review-file` writes both at once."
        ),
    ),
    "ACP302": (
        "review.md has a review that the log does not know: its author has not appended the event.",
        "Append review_submitted, or correct the number in the heading.",
    ),
    "ACP303": (
        (
            "The heading bears the number of another event: that of the review is asked for, not of "
            "the one it answers."
        ),
        "Correct the number in the heading.",
    ),
    "ACP304": (
        "The heading names another participant than the event.",
        "Correct the name in the heading.",
    ),
    # readiness.md
    "ACP310": (
        "Something in readiness.md is marked as blocking: the run must not go on over it.",
        "Settle it and mark it [resolved], or append blocked.",
    ),
    "ACP311": (
        "A question is not classified: it is [unresolved], or its text still says TBD.",
        "Mark it [resolved], [deferred_nonblocking] with a reason, or [blocking].",
    ),
    "ACP312": (
        "What is put off must say why.",
        "Add `Reason: ...` to the same line.",
    ),
    "ACP313": (
        "The last check of readiness.md is not made.",
        "When everything is in order, write the line `- [x] Ready to implement`.",
    ),
    "ACP314": (
        "The collaboration may end only when every gate is met.",
        "Check each gate in readiness.md with a line `- [x] ` and the gate's exact text.",
    ),
    "ACP315": (
        "What is put off should say why; before decisions are accepted it must.",
        "Add `Reason: ...` to the same line.",
    ),
    # conclusion.md
    "ACP320": (
        "The conclusion must answer all of the protocol's questions.",
        "Add the missing headings (level 2) to conclusion.md.",
    ),
    "ACP321": (
        "The conclusion must say one thing: proceed, do_not_proceed or defer.",
        "Leave one line such as `- [proceed] Why.` and remove other outcome lines.",
    ),
    "ACP322": (
        "A collaboration whose outcome is blocked is not complete.",
        "Write the outcome that was reached, or append blocked.",
    ),
    "ACP323": (
        "The words TBD, TODO, unresolved and 待定 mark unfinished text, wherever they stand.",
        "Finish or reword those places.",
    ),
    # the state machine
    "ACP401": (
        "The event came in a phase in which it means nothing. The state after it is uncertain.",
        _NEVER,
    ),
    "ACP402": (
        "Somebody else than the one whose turn it was has acted. The state after it is uncertain.",
        _NEVER,
    ),
    "ACP403": ("A collaboration is started once, by its first event.", _NEVER),
    "ACP404": (
        "Whoever starts a collaboration must take part in it.",
        "Correct the list of participants in protocol.json.",
    ),
    "ACP405": (
        "A proposal needs somebody who reviews it.",
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
        "The end must name the conclusion.",
        "Append completed with doc conclusion.md.",
    ),
    "ACP409": (
        "In this dialect a proposal comes with a draft of the primary deliverable.",
        "Draft it and append deliverable_drafted first.",
    ),
    "ACP410": (
        "Readiness can be passed only on a deliverable that no longer changes.",
        "Append deliverable_frozen first.",
    ),
    "ACP411": (
        "A frozen deliverable does not change any more.",
        "Go on in a new folder with `acp continue` if it must.",
    ),
    "ACP412": ("A deliverable is frozen once.", _NEVER),
}
