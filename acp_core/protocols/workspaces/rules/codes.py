"""Why each rule exists and what to do, by code; and the action that does it, where there is one.

Source: agent workspaces specification, "Why Protocols Matter": what is agreed before anything is
dispatched cannot be negotiated later.
"""

from __future__ import annotations

from acp_core.protocols.kit.findings import UNSEEN_TEXT
from acp_core.protocols.workspaces.actions.names import AGAIN, FINISH, REPAIR, RESOLVE, TRIAGE

_AGAIN = "Rerun the agent with feedback that names the fault."
_PROMPT = "Name the fault in the agent's next prompt."
_MEND = "Repair the run: acp moves unreadable files aside and rebuilds what it can."
_HARMLESS = "No action needed."

_FILES: dict[str, tuple[str, str]] = {
    "B01": ("An unreadable status file says nothing about its agent.", _AGAIN),
    "B02": ("Agent and task identify the result; the status says how the task ended.", _PROMPT),
    "B03": ("Only success, partial and failure are defined.", _PROMPT),
    "B04": ("A file written into another agent's workspace hides that agent's result.", _AGAIN),
    "B05": ("Without a valid time, the newer status cannot be determined.", _PROMPT),
    "B06": ("A listed file that does not exist cannot be integrated.", _AGAIN),
    "B07": ("A relative path depends on the working folder.", _PROMPT),
    "B08": (
        "Workspaces keep agents from overwriting each other.",
        "Check the file, undo the change, and rerun the agent that owns it.",
    ),
    "B09": ("The size estimate helps to plan the reading of outputs.", _HARMLESS),
    "B10": ("A successful agent must write an output.", _AGAIN),
    "B11": ("The status is written last: an output that changed later may be incomplete.", _AGAIN),
    "B12": ("Two status files that differ cannot both be right.", "Remove the wrong one."),
    "B13": ("An empty output cannot be integrated.", _AGAIN),
    "B14": ("The description explains the purpose of a file.", _PROMPT),
    "B15": ("acp does not read scratch files.", "Move the output out of the scratch folder."),
    "B16": ("Other readers do not know these keys.", _HARMLESS),
    "B17": ("The run has moved since its agents wrote these paths.", _HARMLESS),
    "B20": ("Only the returned object explains missing results.", _AGAIN),
    "B21": ("The orchestrator needs these keys.", _PROMPT),
    "B22": ("Only success, partial and failure are defined.", _PROMPT),
    "B23": ("Without a reason you cannot decide what to do with the result.", _AGAIN),
    "B24": (
        "A success with errors counts as partial.",
        "Read its errors and decide on the result.",
    ),
    "B25": ("The orchestrator reads the summary before the files.", _PROMPT),
    "B26": ("Return and status file must describe the same result.", _AGAIN),
    "B27": ("Return and status file must name the same agent and task.", _AGAIN),
    "B28": ("Both lists must name the same files.", "Check which list is complete."),
    "B29": ("An agent sometimes names a file that it never wrote.", _AGAIN),
    "B30": ("A relative path depends on the working folder.", _PROMPT),
    "B31": ("Role and description identify a task.", _HARMLESS),
    "B32": ("Text around the object makes it ambiguous.", _PROMPT),
}
_RUN: dict[str, tuple[str, str]] = {
    "B36": ("acp does not write to a run with an invalid manifest.", _MEND),
    "B37": ("Only the manifest says which agent does what.", _MEND),
    "B38": ("Until the write is finished, the files disagree.", _MEND),
    "B39": ("Unreadable decisions have no effect.", _MEND),
    "B40": ("One agent overwrote the file of the other.", "Rerun one of them."),
    "B41": ("The second dispatch overwrites files of the first.", "Give it a timestamp."),
    "B42": ("The task_id identifies a result.", "Give each its own task_id."),
    "B43": ("An agent without a workspace writes somewhere else.", "Create the workspace."),
    "B44": (
        "Files alone do not distinguish slow work from a crash.",
        "Keep waiting, or decide on the result.",
    ),
    "B45": ("An output outside the workspaces has no owner.", "Move it to its agent's workspace."),
    "B46": (
        "The manifest lists the agents to wait for.",
        "Add the agent to the manifest, or remove its workspace.",
    ),
    "B47": ("Many failures suggest too many agents or unclear tasks.", _PROMPT),
    "B48": ("The agent worked on input that did not exist yet.", "Rerun the agent."),
    "B49": ("The agent cannot read a required input.", "Provide the file, or change the prompt."),
    "B50": ("An agent takes a placeholder literally.", "Fill in the placeholder."),
    "B51": ("A relative path depends on the working folder.", "Use an absolute path."),
    "B52": ("Agents rely on every section of the template.", "Add the section."),
    "B53": (
        "Agents leave long tasks half done.",
        "Shorten the task to one paragraph, or split it.",
    ),
    "B54": ("Workspaces keep agents from overwriting each other.", "Name the agent's workspace."),
    "B55": (
        "acp sees agents of an agent only in a run of its own, and a manager's agents may not have one.",
        "Allow only agents of the outermost run to launch others.",
    ),
}
_INTEGRATION: dict[str, tuple[str, str]] = {
    "B60": ("The integration lacks a result that needs your decision.", "Decide on the result."),
    "B61": ("The final output lacks what was written later.", "Integrate again."),
    "B62": ("Only the integration status lists what was skipped.", "Finish the integration."),
    "B63": ("It is unknown whether the result was integrated.", "Finish the integration again."),
    "B64": ("Readers must know what is missing.", "List it among the gaps."),
    "B65": ("Only its resolution says which version holds, and why.", "Resolve it."),
    "B66": ("Each category has its own rule; facts are never averaged.", "Resolve it again."),
    "B67": ("Only one final output can be valid.", "Move the others away."),
    "B68": ("Only the orchestrator may write there.", "Check the file, and integrate again."),
}
UNSEEN = "B69"
CODES = _FILES | _RUN | _INTEGRATION | {UNSEEN: UNSEEN_TEXT}
ACTIONS = {
    **dict.fromkeys((code for code, (_, remedy) in CODES.items() if remedy == _AGAIN), AGAIN),
    **dict.fromkeys(("B24", "B44", "B60"), TRIAGE),
    **dict.fromkeys(("B61", "B62", "B63"), FINISH),
    "B65": RESOLVE,
    **dict.fromkeys(("B36", "B37", "B38", "B39"), REPAIR),
}
"""The action that mends it; its form begins with the agent that is asked about first."""
