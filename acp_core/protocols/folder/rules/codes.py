"""Why each rule exists and what to do when it speaks, in plain words, by code.

The texts stand in three tables by subject; codes never change their meaning. Loaded only
when somebody asks. Standard library only.
"""

from __future__ import annotations

from typing import NamedTuple

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
        "Classify every question, and append question_classified again.",
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
    "ACP946": (
        "The words TBD, TODO, unresolved and 待定 refuse completion wherever they stand.",
        "Reword that line before completed is appended.",
    ),
    "ACP959": (
        "Reviewers will be asked to read a deliverable that says nothing.",
        "Write the deliverable, and append deliverable_revised.",
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

_EDIT = "Correct the declaration in protocol.json."

_NEVER = "Earlier events are never rewritten: append blocked, and continue in a new folder with `acp continue`."

_FREEZE = "If the change is intended, continue in a new folder with `acp continue`; otherwise restore the file."

DELIVERABLES: dict[str, tuple[str, str]] = {
    # protocol.json
    "ACP130": (
        "A collaboration with deliverables names its protocol.",
        'Set `"protocol": "acp"` in protocol.json.',
    ),
    "ACP131": (
        "acp does not know this schema version: it shows the folder but does not write to it.",
        "Use a newer acp, or set schemaVersion to 2 if the folder uses that version.",
    ),
    "ACP132": (
        "A gate must have a source (objective or generated) and a text.",
        'Write each gate as {"source": "objective", "text": "..."}.',
    ),
    "ACP133": (
        "Deliverables are stored in the folder (internal) or outside it (external).",
        _EDIT,
    ),
    "ACP134": (
        "External deliverables need the root of their repository.",
        _EDIT,
    ),
    "ACP135": (
        "An absolute path would mean something else on another machine.",
        "Write repoRoot relative to the collaboration's folder, such as `..`.",
    ),
    "ACP136": (
        "repoRoot must be an existing folder that holds the collaboration, and not the whole disk.",
        "Write repoRoot relative to the collaboration's folder, such as `..`.",
    ),
    "ACP137": ("Internal deliverables have no repository root.", "Remove repoRoot."),
    "ACP138": ("The folder of the deliverables must be named.", _EDIT),
    "ACP139": ("Deliverables must be inside their root.", _EDIT),
    "ACP140": ("There is nothing to produce without a primary deliverable.", _EDIT),
    "ACP141": (
        "A custom deliverable needs a check list of its sections.",
        "Add the section titles to deliverables.primary.checklist.",
    ),
    "ACP142": (
        "The type decides which sections are required; this type is unknown.",
        "Use one of the known types, or custom with a check list.",
    ),
    "ACP143": ("Deliverables are Markdown files, so that every agent can read them.", _EDIT),
    "ACP144": ("A declared file must be inside the deliverables' folder.", _EDIT),
    "ACP145": ("Each supporting deliverable is a file of its own.", _EDIT),
    "ACP146": ("A file cannot be the primary and a supporting deliverable at once.", _EDIT),
    "ACP147": ('An attachment is an object such as {"file": "data.csv"}.', _EDIT),
    "ACP148": ("An attachment must name its file.", _EDIT),
    "ACP149": (
        "acp checks only the first ones.",
        "Check protocol.json: it is probably damaged.",
    ),
    # events
    "ACP501": (
        "An event about a deliverable must have a role: primary or supporting.",
        "Append such events with --role.",
    ),
    "ACP502": (
        "An event about a deliverable must name its file.",
        "Append such events with --doc and the deliverable's reference.",
    ),
    "ACP503": (
        "The digest, 64 lower-case hex digits, proves later that what was frozen has not changed.",
        "Append deliverable_frozen with --sha256, or let `acp append` compute it.",
    ),
    "ACP504": ("The deliverable was changed after it was frozen.", _FREEZE),
    "ACP505": ("The event names another file than the primary deliverable.", _NEVER),
    "ACP506": (
        "The event names a file that protocol.json does not declare.",
        "Declare it under deliverables.supporting.",
    ),
    "ACP507": ("The frozen file is missing or cannot be read.", _FREEZE),
    # the texts
    "ACP510": (
        "A deliverable is missing although participants work on it.",
        "Restore the file, or correct its declaration in protocol.json.",
    ),
    "ACP511": (
        "A deliverable must show its status.",
        "Add a line `Status: Draft`, `Status: In Review` or `Status: Frozen`.",
    ),
    "ACP512": (
        "A frozen deliverable must have the status Frozen.",
        "Set `Status: Frozen` before you freeze it: the digest covers that line too.",
    ),
    "ACP513": (
        "The deliverable's type requires this section.",
        "Add a heading of level 2 with exactly this text.",
    ),
    "ACP514": ("A frozen deliverable must not have empty sections.", "Fill in the section."),
    "ACP515": (
        "The deliverable cannot be read.",
        "Make it a regular UTF-8 text file of at most 4 MiB below the deliverables' folder.",
    ),
    "ACP521": (
        "protocol.json marks the file as frozen, but the log has no freeze event.",
        "Append deliverable_frozen with --role supporting, or set frozen to false.",
    ),
    "ACP522": (
        "The log has a freeze event, but protocol.json does not mark the file as frozen.",
        "Set frozen to true in its declaration.",
    ),
    "ACP523": (
        "A declared attachment is missing.",
        "Put the file in place, or remove it from protocol.json.",
    ),
    # what must name them
    "ACP530": (
        "Decisions are numbered so that others can refer to them.",
        "Write headings of level 3 in decisions.md as `### D1. Title`.",
    ),
    "ACP531": ("A decision must say what was decided.", "Add a line `- Decision: ...`."),
    "ACP532": (
        "A decision must name where it is implemented.",
        "Add a line `- Reflected in: ` with a deliverable's reference.",
    ),
    "ACP533": (
        "A decision must be implemented in a declared deliverable.",
        "Name the deliverable's reference in the decision's block.",
    ),
    "ACP534": ("The decisions' numbers must be 1, 2, 3 and so on.", "Renumber them in order."),
    "ACP535": ("Two decisions have the same number.", "Renumber them in order."),
    "ACP540": (
        "A review must name what it reviewed.",
        "Add a line `Reviewed primary deliverable: ` with its reference to review.md.",
    ),
    "ACP541": (
        "A review must state its scope.",
        "Add `Review Scope:` with a list to review.md.",
    ),
    "ACP542": (
        "A review must cover whether the deliverable is complete.",
        "Add `- Primary deliverable completeness` to the review's scope.",
    ),
    "ACP543": (
        "A review must name the deliverable.",
        "Name the primary deliverable's reference in review.md.",
    ),
    "ACP544": (
        "The conclusion must name what was produced.",
        "Name the primary deliverable's reference in conclusion.md.",
    ),
}

_REPAIR = "Run `acp repair` on the folder: acp shows the change before making it."

_NEVER_CHANGED = "Earlier events are never rewritten: append a corrective event, or append blocked and continue in a new folder with `acp continue`."

_CORRECT_FIELD = (
    "Correct it in protocol.json; only phase, owner and waitingFor follow from the log."
)

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
        _CORRECT_FIELD,
    ),
    "ACP114": ("A collaboration needs at least one participant.", _CORRECT_FIELD),
    "ACP115": (
        "Without completion gates, it is undefined when the collaboration is complete.",
        _CORRECT_FIELD,
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
    "ACP122": ("A gate must be a text.", _CORRECT_FIELD),
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
    "ACP202": ("Each line of the log must be one JSON object.", _NEVER_CHANGED),
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
    "ACP210": ("An event lacks a field that every event must have.", _NEVER_CHANGED),
    "ACP211": (
        "The protocol has no event with this name; its effect on the state is unknown.",
        _NEVER_CHANGED,
    ),
    "ACP212": (
        "The author of an event is not in the list of participants.",
        "Agents must use an id from protocol.json; the list is fixed at the start.",
    ),
    "ACP213": (
        "A reply must name an earlier event.",
        _NEVER_CHANGED,
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
        _NEVER_CHANGED,
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
        _NEVER_CHANGED,
    ),
    "ACP402": (
        "The author of the event did not have the turn. The state after it is uncertain.",
        _NEVER_CHANGED,
    ),
    "ACP403": ("A collaboration is started once, by its first event.", _NEVER_CHANGED),
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
    "ACP412": ("A deliverable is frozen once.", _NEVER_CHANGED),
}


class About(NamedTuple):
    """Why a rule exists, and what to do."""

    explanation: str
    remedy: str


CODES: dict[str, About] = {
    code: About(*texts)
    for table in (PROTOCOL, DELIVERABLES, ADVICE)
    for code, texts in table.items()
}


def about(code: str) -> About:
    """The texts of a code.

    Raises:
        KeyError: there is no such code.
    """
    return CODES[code]
