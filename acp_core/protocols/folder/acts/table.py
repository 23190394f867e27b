"""Every act and query of a folder collaboration, described once: what a form offers, and the commands.

Those of participants stand in `table_agents`. A turn that is legal now has the name of its event.
Source: folder protocol specification, "Events", "Phases" (``blocked`` and ``completed`` have no way
out but a new folder) and "Readiness Gate".
"""

from __future__ import annotations

from acp_core.model.action_field import PARTICIPANTS, PRESETS
from acp_core.model.action_spec import (
    DONE,
    PLACE,
    ActionSpec,
    Exits,
    Field,
    Intent,
    Kind,
    QuerySpec,
)
from acp_core.protocols.folder.acts import table_agents
from acp_core.protocols.folder.acts.agents import FORCED
from acp_core.protocols.folder.acts.table_agents import INIT as INIT_SPEC
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.schema.records import ANSWER_QUESTION as ANSWERING
from acp_core.protocols.folder.schema.records import BLOCK, CREATE
from acp_core.protocols.folder.schema.records import CHECK_GATES as CHECK
from acp_core.protocols.folder.schema.records import CONTINUE as CONTINUE_NAME
from acp_core.protocols.folder.schema.records import REPAIR as REPAIR_NAME
from acp_core.protocols.folder.schema.records import SETTLE_QUESTIONS as SETTLE
from acp_core.protocols.kit import command_line
from acp_core.protocols.kit.command import Commands

_ACTS = "acp_core.protocols.folder.acts"

_SKILL = "acp_core.protocols.folder.skill"

REPAIRING = ActionSpec(
    REPAIR_NAME,
    "Repair",
    "Repair a collaboration's files.",
    f"{_ACTS}.creating:repairing",
    (command_line.YES, FORCED),
    Intent.REPAIR,
    command="repair",
    help="Shows the damage and the exact change, asks, keeps a copy, repairs, and validates again. "
    "--json needs --yes or --dry-run.",
    examples=("acp repair checkout --dry-run", "acp repair checkout --yes"),
    exits=(
        (0, "nothing to repair, or repaired and valid"),
        (1, "not confirmed"),
        (2, "a problem is left that cannot be repaired, or refused"),
        (130, "interrupted"),
    ),
    run=f"{_ACTS}.creating:repair",
)
CONTINUATION = ActionSpec(
    CONTINUE_NAME,
    "Continue in a new folder",
    "Start a new collaboration with the documents, decisions and participants of this one.",
    f"{_ACTS}.creating:continuing",
    (
        Field("answer", "Answer", "How the blocker is resolved; placed at the top of the new proposal.",
              Kind.LINES, metavar="TEXT", needed=True),
        Field("objective", "Objective", "The new objective; blank: the same as before."),
        Field("folder", "New folder", "The new folder; must not exist yet (default: NAME-2, NAME-3).",
              flag="--to", metavar="FOLDER", owner=True),
        Field("start", "Start the same agents there",
              "Start the agents that ran here in the new folder, too.", Kind.FLAG, owner=True),
        Field("answer_file", help="Read the answer from a file.", kind=Kind.FILE, form=False, owner=True),
        FORCED,
    ),
    Intent.CONTINUE,
    command="continue",
    help="Works for blocked and completed collaborations; each folder names the other.",
    examples=(
        'acp continue checkout --to checkout-2 --answer "Use the sandbox account"',
        'acp continue checkout --answer "Use the sandbox account" --start',
    ),
    exits=((0, "continued"), (1, "continued, but an agent did not start"), *DONE[1:]),
    place=PLACE._replace(name="source", flag="--folder", metavar="FOLDER"),
    run=f"{_ACTS}.creating:continue_in_new_folder",
)  # fmt: skip
_PROGRAM = Field("program", "Program", "Install for this program, where it looks for skills and tools.",
                 Kind.CHOICE, ("claude", "codex", "opencode", "gemini", "qwen"), flag="--for",
                 metavar="PROGRAM", optional=True)  # fmt: skip
_PROJECT = Field("project", "Project", "Install only for this project's folder, not for all your projects.",
                 Kind.FOLDER, optional=True)  # fmt: skip
INSTALLATION = ActionSpec(
    "install",
    "Install the skill",
    "Install the skill in a folder, or for a program; or update it there.",
    fields=(
        _PROGRAM,
        _PROJECT,
        Field("collaboration", "Collaboration", "Also install the tools, for the collaboration in this folder.",
              Kind.FOLDER, optional=True),
        Field("participant", "Participant", "Participant as which the agent uses the tools.", optional=True,
              metavar="ID", suggests=PARTICIPANTS),
        command_line.YES,
        command_line.FORCE._replace(help="Replace installed files that were edited since."),
    ),
    command="skill install",
    help="SKILL.md, README.md and scripts are written into DIR, for example into the folder from which "
    "your agents load skills. The scripts need Python 3.11 and no package. An installed skill "
    "is updated; files that acp did not install are never changed. With --for, acp shows the files "
    "and differences, and asks.",
    examples=(
        "acp skill install ~/my-agent/skills/agent-collaboration",
        "acp skill install --for claude",
        "acp skill install --for codex --collaboration checkout --participant server",
    ),
    place=Field("folder", help="The skill's own folder.", kind=Kind.FOLDER, position=True,
                metavar="DIR", form=False, default=""),
    run=f"{_SKILL}.for_programs:install",
)  # fmt: skip
REMOVAL = ActionSpec(
    "remove",
    "Remove the skill",
    "Remove the skill and the tools that acp installed for a program.",
    fields=(_PROGRAM._replace(required=True, optional=False, help="Remove them for this program."),
            _PROJECT, command_line.YES),
    command="skill remove",
    help="acp removes exactly what it installed. What was changed since stays, and acp names it.",
    examples=("acp skill remove --for claude",),
    place=None,
    run=f"{_SKILL}.for_programs:remove_for",
)  # fmt: skip

_fields = {each.name: each for each in INIT_SPEC.fields}
_OBJECTIVE = _fields.pop("objective")._replace(required=True)
_PARTICIPANTS = _fields.pop("participants")._replace(
    required=True, position=True, metavar="PARTICIPANT[=PRESET]",
    help="Name the participants, agents and people; the first one owns the proposal.", suggests=PRESETS,
)  # fmt: skip
_GATES = _fields.pop("gates")._replace(required=True)

_fields.pop("resume")

AGENTS = command_line.AGENT._replace(
    title="Agents", items=Kind.CHOICE, help="Choose the agent of a participant, or (without NAME) of all others. "
    "Participants without an agent take part by hand.", form=True,
    names_from="participants",
)  # fmt: skip

NEW_SPEC = INIT_SPEC._replace(
    name=CREATE,
    label="Create and start",
    sentence="Create a collaboration in a folder, and start its agents.",
    bind="acp_core.protocols.folder.acts.creating:creation",
    fields=(_OBJECTIVE, _GATES, _PARTICIPANTS, AGENTS, *_fields.values()),
    command="new",
    help="It writes what `acp init` writes, and starts a loop for each participant with an agent, as "
    "`acp launch` does. `acp doctor` lists the installed agents.",
    aliases=("init",),
    examples=(
        (
            "acp new checkout server=claude reviewer=codex \\\n"
            '    --objective "Decide how checkout retries" --completion "Retry policy chosen"'
        ),
        (
            "acp new checkout server reviewer me --agent claude --dry-run \\\n"
            '    --objective "Decide how checkout retries" --completion "Retry policy chosen"'
        ),
    ),
    exits=((0, "created, and all agents run"), (1, "created, but an agent did not start"), *DONE[1:]),
    place=PLACE._replace(default=None, required=True, help="The folder; created if it does not exist."),
    run="",
)  # fmt: skip

_EXITS: Exits = (
    (0, "done"),
    (1, "not confirmed"),
    (2, "refused, or invalid input"),
    (6, "the store cannot be reached"),
    (7, "another host acts for the participant"),
    (8, "the store refused it"),
    (9, "the history in the store was rewritten"),
    (130, "interrupted"),
)
REQUEST_VERBS = ("start", "stop", "nudge", "take", "allow", "reject")
"""What a host can be asked for."""
_STORE = Field("url", "Store", "Name the store: a git repository by ssh, https or path, or a PostgreSQL database.",
               required=True, position=True, metavar="URL", owner=True)  # fmt: skip
SHARING = ActionSpec(
    "share",
    "Share",
    "Share a collaboration with other hosts, over a git repository or a PostgreSQL database.",
    f"{_ACTS}.sharing:sharing",
    (
        _STORE._replace(required=False),
        Field("id", "Name in the store", "Choose the collaboration's name in the store [default: the folder's name].",
              metavar="ID"),
        Field("group", "Group", "Let the accounts of this group on this machine write in the folder, too.",
              metavar="GROUP", asked=False),
        Field("exclusive", "Only acp appends", "Make log and protocol.json read-only for scripts that append "
              "without acp.", Kind.FLAG, asked=False),
        command_line.YES,
    ),
    risky=True,
    command="share",
    help="acp lists first which files leave this machine: the protocol's documents, README.md, declared "
    "deliverables and attachments. Nothing else does. Without URL, --group and --exclusive change the folder alone.",
    examples=(
        "acp share checkout git@forge.example:team/coordination.git",
        "acp share checkout git+ssh://anna@server/srv/acp.git#checkout",
        "acp share checkout --group agents",
    ),
    exits=_EXITS,
    run=f"{_ACTS}.sharing:share",
    owner=True,
)  # fmt: skip
JOINING = ActionSpec(
    "join",
    "Join",
    "Bring a shared collaboration into a new folder of this machine.",
    fields=(
        _STORE._replace(help="Name the collaboration: the store's address with #ID."),
        Field("folder", "Folder", "Name the new folder.", Kind.FOLDER, required=True, position=True),
    ),
    command="join",
    help="acp judges everything that the store holds before it writes a file.",
    examples=("acp join git@forge.example:team/coordination.git#checkout checkout",),
    exits=_EXITS,
    place=None,
    dry_run=False,
    run=f"{_ACTS}.sharing:join",
)  # fmt: skip
_NAME = Field("mine", "Take mine", "Take your text of this document, which was changed on both sides.",
              metavar="NAME", optional=True)  # fmt: skip
SYNCING = ActionSpec(
    "sync",
    "Synchronize",
    "Bring what is new in the store, and publish documents that participants here may change.",
    f"{_ACTS}.sharing:syncing",
    (
        Field("once", help="Look once, and end.", kind=Kind.FLAG, form=False),
        _NAME,
        _NAME._replace(name="theirs", title="Take theirs", help="Keep the store's text of this document."),
        _NAME._replace(name="merge", title="Merge", help="Merge both texts of this document in your editor.",
                       form=False),
        Field("again", "Append again", "Append the events again that a script appended here without acp, and "
              "that acp moved to .acp/kept.", Kind.FLAG),
        _NAME._replace(name="delete", title="Delete", help="Delete this document on all hosts."),
        _NAME._replace(name="release", title="Give back", help="Let other hosts act for this participant.",
                       metavar="ID", suggests=PARTICIPANTS),
        _NAME._replace(name="take", title="Move here", help="Let this participant act on this host, wherever it "
                       "acts now.", metavar="ID", suggests=PARTICIPANTS),
    ),
    command="sync",
    help="Without an option, acp synchronizes until it is interrupted. Programs that cannot reach the store, "
    "such as agents in a sandbox, append through it.",
    examples=("acp sync checkout", "acp sync checkout --once", "acp sync checkout --mine review.md"),
    exits=_EXITS,
    run=f"{_ACTS}.sharing:sync",
)  # fmt: skip
UNSHARING = ActionSpec(
    "unshare",
    "End sharing",
    "End the sharing of this folder; the folder and the store stay as they are.",
    f"{_ACTS}.sharing:unsharing",
    (command_line.YES,),
    risky=True,
    command="unshare",
    examples=("acp unshare checkout --yes",),
    exits=_EXITS,
    run=f"{_ACTS}.sharing:unshare",
)
ASKING = ActionSpec(
    "ask",
    "Ask another host",
    "Ask another host of a shared collaboration to start, stop or message a participant's loop there.",
    "acp_core.protocols.folder.acts.sharing:ask_host",
    (
        Field("host", "Host", "Name the host, as `acp hosts` does.", required=True, position=True,
              metavar="HOST"),
        Field("verb", "Request", "Choose what the host is to do: start, stop or nudge (message) the loop, "
              "take the participant over from the host where it acts, or allow or reject what an agent asks for.", Kind.CHOICE, REQUEST_VERBS, required=True,
              position=True, metavar="VERB"),
        Field("participant", "Participant", "Name the participant; with allow or reject: the request's id, as "
              "`acp hosts` shows it.", required=True, position=True,
              metavar="ID", suggests=PARTICIPANTS),
        Field("text", "Message", "With nudge, or reject: the message to the participant's agent.", Kind.LINES,
              position=True, metavar="TEXT", most=2_000),
        Field("expires", help="Let the request expire after this time.", kind=Kind.DURATION,
              default=600.0, form=False),
        Field("wait", help="Wait this long for the answer.", kind=Kind.DURATION,
              default=30.0, form=False),
    ),
    command="ask",
    help="The host follows a request only if its owner accepts such requests: accept = [...] below [share] in "
    "its config.toml. It starts a loop only as its owner launched it there before. It answers while "
    "`acp sync` or a loop of the collaboration runs there.",
    examples=(
        "acp ask checkout server stop reader",
        'acp ask checkout server nudge reader "Look at question 3"',
        "acp ask checkout server allow 0123456789abcdef",
    ),
    exits=(
        (0, "done, or the host has not answered yet"),
        (1, "the host does not know how it ended"),
        (2, "refused or expired, or invalid input"),
        *_EXITS[3:4],
        *_EXITS[5:],
    ),
    place=PLACE._replace(default=None, required=True),
    run="acp_core.protocols.folder.acts.sharing:ask",
)  # fmt: skip

HOSTS_QUERY = QuerySpec(
    "hosts",
    "List the hosts of a shared collaboration, who acts where, and what the hosts were asked for.",
    "acp_core.protocols.folder.queries:hosts",
    command="hosts",
    help="Hosts report this themselves: over git, every account that can push can report it.",
    examples=("acp hosts checkout", "acp hosts checkout --json"),
    exits=_EXITS,
)

SHARING_ACTS = (SHARING, SYNCING, ASKING, UNSHARING)
"""Those about a collaboration that is there."""

_CLASSES = ", ".join(f"[{word}]" for word in documents.CLASSES)
_CLASSED = f"Each begins with its class: {_CLASSES}; a deferred one ends in `Reason: ...`."
WHO = Field(
    "participant",
    "Participant",
    "The participant that takes this turn.",
    Kind.CHOICE,
)
"""Always one of them, see `opened.participants`."""
CURRENT = "Current Proposal"
_PROPOSAL = Field(
    "proposal",
    CURRENT,
    "The text under this heading in proposal.md; leave it unchanged if you edited the file.",
    Kind.LINES,
)


def _turn(
    event: str,
    label: str,
    sentence: str,
    summary: str,
    fields: tuple[Field, ...] = (),
    intent: Intent = Intent.OTHER,
    *,
    risky: bool = False,
) -> ActionSpec:
    """An event as a person's turn; ``summary`` is what the log says where nothing else is given."""
    about = "One short sentence for the log."
    return ActionSpec(
        event,
        label,
        sentence,
        f"{_ACTS}.turns:{event.upper()}.bind",
        (WHO, *fields, Field("summary", "Summary", about, default=summary)),
        intent,
        risky=risky,
    )


REVIEW_SUBMITTED = _turn(
    "review_submitted",
    "Review the proposal",
    "Write a review into review.md and submit it.",
    "Reviewed the proposal.",
    (
        Field("position", "Position", "For or against, and why; one line per point.", Kind.LINES,
              required=True),
        Field("concerns", "Concerns", "Your concerns; one line each.", Kind.LINES),
        Field("changes", "Required Changes", "Changes required before you agree; one line each.", Kind.LINES),
        Field("questions", "Questions", "Questions to the owner; one line each.", Kind.LINES),
    ),
)  # fmt: skip
DECISION_ACCEPTED = _turn(
    "decision_accepted",
    "Accept the decisions",
    "Accept the decisions in decisions.md.",
    "Accepted the decisions.",
    (
        Field(
            "read",
            "I have read decisions.md and agree",
            "Every participant must accept the decisions in decisions.md.",
            Kind.FLAG,
        ),
    ),
    Intent.ACCEPT,
)
DELIVERABLE_DRAFTED = _turn(
    "deliverable_drafted",
    "Declare the deliverable drafted",
    "Declare that the primary deliverable is drafted.",
    "Drafted the primary deliverable.",
)
PROPOSAL_SUBMITTED = _turn(
    "proposal_submitted",
    "Submit the proposal",
    "Send proposal.md to the reviewers.",
    "Submitted the proposal for review.",
    (_PROPOSAL,),
)
PROPOSAL_REVISED = _turn(
    "proposal_revised",
    "Revise the proposal",
    "Declare that the proposal answers the reviews, and move to the decisions.",
    "Revised the proposal.",
    (_PROPOSAL,),
)
QUESTION_CLASSIFIED = _turn(
    "question_classified",
    "Classify the open questions",
    "Classify each open question in readiness.md; acceptance starts over.",
    "Classified the open questions.",
    (Field("questions", "Open questions", _CLASSED, Kind.LIST),),
)
DECISION_PROPOSED = _turn(
    "decision_proposed",
    "Propose decisions",
    "Add decisions to decisions.md; questions must then be classified again.",
    "Proposed decisions.",
    (
        Field(
            "decisions",
            "Decisions",
            "Added to decisions.md; state each decision so that it can be accepted as written.",
            Kind.LIST,
        ),
    ),
)
DELIVERABLE_REVISED = _turn(
    "deliverable_revised",
    "Declare the deliverable revised",
    "Declare that the primary deliverable changed.",
    "Revised the primary deliverable.",
)
DELIVERABLE_FROZEN = _turn(
    "deliverable_frozen",
    "Freeze the deliverable",
    "Record the primary deliverable's SHA-256; the file must not change afterwards.",
    "Froze the primary deliverable.",
    (Field("set_status", "Set `Status: Frozen` in the deliverable", kind=Kind.FLAG),),
)
READINESS_PASSED = _turn(
    "readiness_passed",
    "Pass readiness",
    "Declare that nothing blocks the conclusion.",
    "Readiness passed.",
)
COMPLETED = _turn(
    "completed",
    "Conclude",
    "Write conclusion.md and complete the collaboration. No event can follow.",
    "Completed the collaboration.",
    (
        Field(
            "outcome",
            "Outcome",
            "proceed: do it now. do_not_proceed: do not. defer: something must happen first.",
            Kind.CHOICE,
            ("proceed", "do_not_proceed", "defer"),
            required=True,
        ),
        Field("in_short", "In short", "One line next to the outcome."),
    ),
    Intent.DECIDE,
    risky=True,
)
TURNS = (
    REVIEW_SUBMITTED,
    DECISION_ACCEPTED,
    DELIVERABLE_DRAFTED,
    PROPOSAL_SUBMITTED,
    PROPOSAL_REVISED,
    QUESTION_CLASSIFIED,
    DECISION_PROPOSED,
    DELIVERABLE_REVISED,
    DELIVERABLE_FROZEN,
    READINESS_PASSED,
    COMPLETED,
)
"""A person's turns, the most useful first."""
BLOCKING = ActionSpec(
    BLOCK,
    "Block",
    "Stop the collaboration for all participants until it is continued in a new folder.",
    f"{_ACTS}.turns:blocking",
    (
        WHO._replace(
            help="Participant on whose behalf you act; the event is recorded under that name."
        ),
        Field(
            "reason",
            "Reason",
            "The blocker, in one sentence; agents and people read it.",
            required=True,
            metavar="TEXT",
        ),
    ),
    Intent.STOP_EVERYTHING,
    risky=True,
)
ANSWER_QUESTION = ActionSpec(
    ANSWERING,
    "Answer a question",
    "Answer a question of a review: writes your answer below the question in review.md.",
    f"{_ACTS}.documents:answering",
    (
        Field("question", "Question", kind=Kind.CHOICE, required=True),
        Field("answer", "Answer", "Written below the question in review.md.", Kind.LINES, required=True),
    ),
    Intent.ANSWER,
)  # fmt: skip
CHECK_GATES = ActionSpec(
    CHECK,
    "Check a gate",
    "Mark a gate as met: checks its line, or adds the line in its exact words.",
    f"{_ACTS}.documents:checking",
    intent=Intent.DECIDE,
)
SETTLE_QUESTIONS = ActionSpec(
    SETTLE,
    "Resolve open questions",
    "Record in readiness.md how the open questions are resolved.",
    f"{_ACTS}.documents:settling",
    (Field("questions", "Questions", _CLASSED, Kind.LIST, required=True),),
    Intent.DECIDE,
)

ALL = (
    REPAIRING,
    CONTINUATION,
    *TURNS,
    CHECK_GATES,
    ANSWER_QUESTION,
    SETTLE_QUESTIONS,
    BLOCKING,
    SHARING,
    SYNCING,
    ASKING,
    UNSHARING,
    table_agents.APPEND,
)
"""What can be asked for by name."""
INIT, APPEND, NEXT, WAIT, VALIDATE, NEW, REPAIR, CONTINUE = (
    Commands(each.command, each.sentence, (each,), f"acp.{each.command}/1")
    for each in (*table_agents.SPECS.values(), NEW_SPEC, REPAIRING, CONTINUATION)
)
SKILL = Commands(
    "skill",
    "Install the portable skill that agents load to take part in a collaboration.",
    (INSTALLATION, REMOVAL),
    "acp.skill/1",
)
SHARE, JOIN, SYNC, UNSHARE = (
    Commands(each.command, each.sentence, (each,), "acp.share/1")
    for each in (SHARING, JOINING, SYNCING, UNSHARING)
)
ASK = Commands("ask", ASKING.sentence, (ASKING,), "acp.ask/1")
HOSTS = Commands("hosts", HOSTS_QUERY.sentence, (HOSTS_QUERY,), "acp.hosts/1")
COMMANDS = (
    NEW,
    INIT,
    APPEND,
    NEXT,
    WAIT,
    VALIDATE,
    REPAIR,
    CONTINUE,
    SKILL,
    SHARE,
    JOIN,
    SYNC,
    UNSHARE,
    HOSTS,
    ASK,
)
MANUAL = {words: page for each in COMMANDS for words, page in each.manual.items()}
"""Examples and exit codes, by the words of their command."""
