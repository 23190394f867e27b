"""Every code of a problem (`acp why`), in words: what it is about, and what to do.

The sentence of a problem is made where the problem is found, from what was seen. This table says for
each code what its sentences have in common; `tests/hygiene/test_codes.py` checks that it lists the
codes that the code uses, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Texts = tuple[str, str]
"""What a problem is about, and what to do."""


class Room(NamedTuple):
    """The problems of one heading.

    Attributes:
        places: the files and folders whose code uses these codes.
        codes: the texts of each.
    """

    places: tuple[str, ...]
    codes: Mapping[str, Texts]


ROOMS: dict[str, Room] = {
    "Participants and their agents, in every protocol": Room(
        ("acp_core/diagnosis", "acp_core/protocols/kit/guard.py"),
        {
            "B1": ("no loop was ever started for the participant here", "start it, unless it runs elsewhere"),
            "B2": ("the agent or its loop failed, was stopped, or was killed", "restart it"),
            "B3": (
                "the agent ended, but its event is missing: it did nothing, was denied a tool, or its event was refused",
                "send a message that names what is missing; or reassign the turn",
            ),
            "B4": (
                "the agent is not logged in, has reached its usage limit, or has no credit",
                "log in, wait until the limit resets, or reassign the turn",
            ),
            "B5": ("the agent cannot use its model service", "wait until the service works, or reassign the turn"),
            "B6": ("the agent appears to be waiting for interactive input", "reassign the turn, or start the agent with other flags"),
            "B7": ("the agent appears to be waiting for standard input", "restart the loop"),
            "B8": ("an agent that takes part alone stopped waiting for its turn", "restart it"),
            "B9": ("the agent is running but produces no output", "look at its last output; restart it, or reassign the turn"),
            "B10": ("the agent, its loop or a process does not know that it is its turn", "restart it"),
            "B11": (
                "the agent produces output but no event or document, or its event was refused several times",
                "read its last output; send a message that says how to fix this",
            ),
            "B12": ("the agent finished its work but did not exit", "end the process: nothing is lost"),
            "B13": ("two processes act for one participant", "end one of them"),
            "B14": ("a participant that acp does not run here takes longer than usual", "check where it runs, or start it here"),
            "B15": ("the agent asked for a model that is not available", "restart it with another model"),
            "B16": ("the agent ran out of context", "restart it with a model that has a larger context window"),
            "B17": ("the agent asks for permission, or asks you a question", "answer it"),
            "E8": ("a budget, a time limit or a person stopped the work", "raise the budget or the limit, send a message, or end the work"),
            "E9": ("nothing has happened for a long time, and no agent is running", "start the participant whose turn it is, or archive the collaboration"),
            "E20": ("acp cannot write into the folder", "free some space, or give your account write access"),
            "E24": ("another process runs the work, so this one may not", "ask its account to stop, or take over after it has ended"),
            "E25": ("a budget is nearly used up", "raise the budget, or let the loop stop"),
        },
    ),
    "Shared folders": Room(
        ("acp_core/protocols/folder/matters", "acp_core/protocols/folder/write"),
        {
            "A0": ("the folder is invalid for a reason that no other problem covers", "follow the finding that the problem names"),
            "A1": ("the last line of events.jsonl is incomplete, so no event can be appended", "`acp repair`"),
            "A2": ("a line of events.jsonl before the last one cannot be read", "append `blocked`, then continue in a new folder"),
            "A3": ("event sequence numbers have a gap or a duplicate", "append `blocked`, then continue in a new folder"),
            "A4": ("protocol.json is out of date with the event log", "`acp repair`"),
            "A5": ("protocol.json cannot be used", "`acp repair`"),
            "A6": ("the times of the events go backward, or lie in the future", "set the clock of the machine that is wrong"),
            "A7": ("the log contains an event that was not allowed, or the schema version is unknown", "continue in a new folder; for the version, use a newer acp"),
            "A8": ("a file of the protocol is missing, or one is there that the protocol does not allow", "`acp repair` creates the missing file; move the other one out"),
            "A9": ("a file cannot be read, the disk is full, or a sync program left two versions", "do what the problem names"),
            "C1": ("a participant wrote its document, but appended no event", "append the event for it, or ask it to do so"),
            "C2": ("a review has no heading in review.md, or a heading that names another participant", "`acp repair` adds the heading; correct a wrong name by hand"),
            "C3": ("review.md contains a review without an event", "ask its author to append the event"),
            "C4": ("a document changed during its review", "ask the reviewers to read it again"),
            "C5": ("a frozen deliverable was changed", "restore the frozen version, or block and continue in a new folder"),
            "C6": (
                "a document of a shared collaboration was changed on two machines, events of this one were refused, a newer acp shares the folder, another program changed what names the store, its store is away or refused, or nothing follows it",
                "merge the document with `acp sync --merge FILE`, or choose one version; append the events again with `acp sync --again FOLDER`; update acp; put the name back with `acp join`; follow the store with `acp sync FOLDER`",
            ),
            "D1": ("some of several participants have answered, the others not yet", "help only those that are missing"),
            "D2": ("readiness.md contains unresolved questions", "resolve them"),
            "D3": ("readiness.md defers a question without a reason", "add the reason to its line"),
            "D4": ("readiness.md contains a blocking item", "decide it"),
            "D5": ("a gate is not checked, or is worded differently, in readiness.md", "write its line, if the gate is met"),
            "D6": ("conclusion.md is incomplete", "send the owner a message, or write it yourself"),
            "D7": ("open questions are not classified yet", "let the owner classify them"),
            "D8": ("the primary deliverable is not frozen yet", "let the owner freeze it"),
            "D9": ("several review rounds brought no progress", "send a message that says which changes matter"),
            "E1": ("the collaboration is blocked and waits for your answer", "answer, and continue in a new folder"),
            "E2": ("the collaboration was continued in another folder", "look there"),
        },
    ),
    "Agent workspaces": Room(
        ("acp_core/protocols/workspaces/matters.py", "acp_core/protocols/workspaces/write"),
        {
            "A5": ("the manifest, the task or a journal of the run is missing or damaged", "`acp workspaces repair`"),
            "A6": ("a write was interrupted", "`acp workspaces repair`; the next write does the same"),
            "E50": ("another agent wrote into the agent's workspace", "check what is left, then rerun the agent or decide"),
            "E51": ("the status and the files of an agent disagree", "check its files, then rerun it or decide"),
            "E52": ("an agent ended with a partial or failed result", "decide: accept, rerun, skip, do it yourself, or note a gap"),
            "E53": ("an agent ended without a result", "rerun it, or decide"),
            "E54": ("an agent has written nothing for a long time", "keep waiting, stop it, or decide without its result"),
            "E55": ("the process supervising an agent has exited", "dispatch again: acp repeats no work"),
            "E56": ("an agent is waiting to be dispatched", "dispatch it"),
            "E57": ("all outputs are there, but not compared", "compare them"),
            "E58": ("two outputs seem to contradict each other", "resolve the conflict, or dismiss it"),
            "E59": ("the draft is missing, waits for you, or its process has exited", "write or read the draft, then finish"),
        },
    ),
    "Agents on the network": Room(
        (
            "acp_core/protocols/wire/matters.py",
            "acp_core/protocols/wire/network/agent_directory.py",
        ),
        {
            "wire-unreachable": ("the agent does not answer", "restart it, or check its address and the network"),
            "wire-stopped": ("the agent is stopped while messages or tasks wait", "restart it"),
            "wire-queue": ("a peer is connected but acknowledges nothing", "restart the peer, or forget it"),
            "wire-peer-away": ("messages wait for a peer that is away", "restart the peer, move its messages, or forget it"),
            "wire-peer-gone": ("a peer is away, perhaps with open tasks", "restart the peer, or cancel its tasks"),
            "wire-task-orphan": ("the peer of a task is unknown", "cancel the task, and send it to another peer"),
            "wire-task-still": ("an agent has not reported on a task for a long time", "ask the agent, or cancel the task"),
            "wire-signature": ("a message has a wrong signature", "do not trust it; compare the secret or the key with its sender's"),
            "wire-stranger": ("another agent connected in place of a peer", "find out who it is before you forget the peer"),
            "wire-store": ("the store of the agent cannot be used", "move it away; acp then creates a new one"),
            "wire-held": ("an agent of this name is already running", "stop it, or choose another name"),
        },
    ),
    "Governed runs and initiatives": Room(
        ("acp_core/protocols/governed",),
        {
            "A1": ("a file of the run or the initiative cannot be read", "do what the problem names; a damaged file is kept"),
            "A2": ("the state contradicts the history, the events or the configuration", "correct the state, or restore it from a backup"),
            "A3": ("the state of a workstream cannot be read", "restore it, or rebuild it"),
            "A4": ("a turn or a workstream belongs to another run", "reject the turn, or restore the run"),
            "A5": ("a workstream crossed a barrier that is not approved", "`acp governed coordinator mend-workstream`"),
            "A6": ("a write was interrupted, by acp or by the agentxchain program", "`acp governed recover`, resync, or set-aside, as the problem says"),
            "A7": ("a workstream names another initiative", "write the initiative's id into its state"),
            "A8": ("files that only acp writes were changed by another program", "review the changes, then bring back the files or take them"),
            "B1": ("the program of a turn did not start, or ended without a result", "reassign the turn, or stage its result"),
            "B2": ("a turn was assigned, but has no bundle", "reassign the turn"),
            "B3": ("a turn is past its deadline", "check on the agent, or reject the turn"),
            "B4": ("a rejected turn waits to be reassigned", "reassign it"),
            "B5": ("a turn without a deadline takes longer than usual", "check on the agent, or reject the turn"),
            "C1": ("a turn conflicts with a turn that was accepted meanwhile", "reject the turn, so that it is redone"),
            "C2": ("the result of a turn was not accepted", "correct the result, or reject the turn"),
            "C3": ("context documents do not contain the decisions", "write the decisions to TALK.md"),
            "C4": ("a turn is held and needs you", "reject it, or escalate"),
            "D1": ("a gate was requested but is not met", "let a role of this phase provide what is missing"),
            "D2": ("a turn's request to leave the phase was dropped, or is queued behind no turn", "let a new turn request it again"),
            "D3": ("a run and its initiative disagree about being completed", "approve the run's completion, or resync"),
            "D4": ("a workstream is blocked, but its barrier or coordinator does not know it", "resolve what blocks it, then resync"),
            "D5": ("a barrier waits for a gate that no run requests", "approve the runs one by one"),
            "D6": ("a gate is approved but the run did not move, or a barrier has no work left", "let a turn request the gate again; accept missing results"),
            "D7": ("other workstreams wait at a barrier for this one", "do what this workstream needs"),
            "D8": ("a barrier can never be reached", "correct the configuration"),
            "D9": ("a gate across repositories needs your approval", "approve it, or send workstreams back to work"),
            "D10": ("the coordinator has not noticed that a workstream reached or left a barrier", "let the coordinator check all workstreams"),
            "D11": ("a barrier is approved, but a workstream did not cross it", "resync"),
            "D12": ("a hook vetoed a gate", "send the phase back to work; approve only if the hook is wrong"),
            "E1": ("the run is blocked", "resolve what blocks it, then unblock it"),
            "E2": ("the initiative is blocked", "fix the failure, then resync"),
            "E21": ("git refuses to read the repository", "run the command that the problem names"),
            "E22": ("acp cannot start the program of a role", "choose a runtime of a supported type"),
            "E23": ("the configuration has hooks that you have not allowed, or that acp does not run", "`acp governed trust`, or change the hook"),
        },
    ),
    "Development cycles": Room(
        ("acp_core/protocols/cycle/matters.py", "acp_core/protocols/cycle/matters.py"),
        {
            "A5": ("the state file of the cycle is lost or damaged", "`acp cycle rebuild`"),
            "B1": ("the cycle has no orchestrator yet", "start one"),
            "B2": ("the orchestrator exited before the cycle ended", "restart it: it repeats nothing"),
            "B14": ("the files have stopped changing, and no orchestrator runs here", "check the orchestrator on its machine, or start one here"),
            "E1": ("the cycle is paused", "resume it when you are ready"),
            "E7": (
                "an agent failed, asks for a decision, reports a blocker, waits for nothing, or left the tests unproven",
                "decide, resolve the blocker, rerun the agent, or accept the result",
            ),
            "E8": ("the limit of iterations is reached and tests fail, or an agent asks for a higher limit", "allow more iterations, accept the result, or stop the cycle"),
        },
    ),
}  # fmt: skip
