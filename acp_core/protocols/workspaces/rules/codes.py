"""Why each rule exists and what to do, by code; and the action that does it, where there is one.

Source: agent workspaces specification, "Why Protocols Matter": what is agreed before anything is
dispatched cannot be negotiated later.
"""

from __future__ import annotations

from acp_core.protocols.kit.findings import UNSEEN_TEXT
from acp_core.protocols.workspaces.actions.names import AGAIN, FINISH, REPAIR, RESOLVE, TRIAGE

_AGAIN = "Run the agent once more, and say in its feedback what is wrong."
_PROMPT = "Say it in the agent's next prompt."
_MEND = "Mend the run: what cannot be read is moved aside, and made anew where it can be."
_HARMLESS = "It may stay as it is."

_FILES: dict[str, tuple[str, str]] = {
    "B01": ("A status file that cannot be read says nothing of its agent.", _AGAIN),
    "B02": ("Agent and task tell whose result it is, the status what came of it.", _PROMPT),
    "B03": ("Only success, partial and failure say what to do next.", _PROMPT),
    "B04": ("Whoever writes into another's workspace hides that one's result.", _AGAIN),
    "B05": ("Without a proper time it is not known which status is the newer one.", _PROMPT),
    "B06": ("What is listed and not there cannot be integrated.", _AGAIN),
    "B07": ("A relative path means another file in another working folder.", _PROMPT),
    "B08": (
        "Workspaces keep agents from overwriting each other.",
        "Look at the file: put back what was changed, and run its agent once more.",
    ),
    "B09": ("The size tells what reading the output will take.", _HARMLESS),
    "B10": ("A success has written something.", _AGAIN),
    "B11": ("The status comes last: an output that changed later may be half done.", _AGAIN),
    "B12": ("Of two status files that differ only one can be true.", "Remove the wrong one."),
    "B13": ("An empty output is nothing to integrate.", _AGAIN),
    "B14": ("The description tells what a file is for.", _PROMPT),
    "B15": ("Scratch files are not read.", "Have it written beside the scratch folder."),
    "B16": ("Other readers do not know these keys.", _HARMLESS),
    "B17": ("The run stands elsewhere than its agents wrote.", _HARMLESS),
    "B20": ("Only the returned object says why something is missing.", _AGAIN),
    "B21": ("The orchestrator relies on these keys.", _PROMPT),
    "B22": ("Only success, partial and failure say what to do next.", _PROMPT),
    "B23": ("Without the reason nobody can decide what becomes of it.", _AGAIN),
    "B24": ("A success with errors is a partial.", "Read its errors, and decide on it."),
    "B25": ("The summary is read before the files are.", _PROMPT),
    "B26": ("Return and status file tell of one result.", _AGAIN),
    "B27": ("Return and status file tell of one agent and task.", _AGAIN),
    "B28": ("Both lists name the files that were written.", "Look which of them is complete."),
    "B29": ("An agent sometimes names a file that it never wrote.", _AGAIN),
    "B30": ("A relative path means another file in another working folder.", _PROMPT),
    "B31": ("Tasks are told apart by role and description.", _HARMLESS),
    "B32": ("Prose around the object has to be guessed away.", _PROMPT),
}
_RUN: dict[str, tuple[str, str]] = {
    "B36": ("Nothing is written into a run whose manifest is not what it should be.", _MEND),
    "B37": ("Without the manifest nobody knows who does what.", _MEND),
    "B38": ("Until it is finished, the files do not agree.", _MEND),
    "B39": ("What cannot be read decides nothing.", _MEND),
    "B40": ("One of the two overwrote the other.", "Run one of them once more."),
    "B41": ("The second dispatch overwrites what the first one wrote.", "Give it a stamp."),
    "B42": ("Results are told apart by their task.", "Give each its own task_id."),
    "B43": ("An agent whose workspace is missing writes somewhere else.", "Make the workspace."),
    "B44": ("Nothing tells slow work from a crash.", "Wait on, or decide on it."),
    "B45": ("An output beside the workspaces belongs to nobody.", "Move it to its agent."),
    "B46": ("The manifest says whom to wait for.", "Name the agent in the manifest, or not."),
    "B47": ("So many failures tell of too many agents, or of unclear tasks.", _PROMPT),
    "B48": ("It worked on something that was not there yet.", "Run it once more."),
    "B49": ("It cannot read what it must read.", "Put the file there, or change the prompt."),
    "B50": ("An agent takes a bracket for what is meant.", "Fill it in."),
    "B51": ("A relative path means another file in another working folder.", "Name it in full."),
    "B52": ("What the template says is what agents can rely on.", "Add the section."),
    "B53": ("Long tasks are done by half.", "Say it in one paragraph, or split the task."),
    "B54": ("Workspaces keep agents from overwriting each other.", "Name its workspace."),
    "B55": (
        "Agents of an agent are seen where it keeps a run of its own; those of a manager may have none.",
        "Let only the agents of the outermost run launch others.",
    ),
}
_INTEGRATION: dict[str, tuple[str, str]] = {
    "B60": ("What was integrated lacks a part that nobody decided on.", "Decide on it."),
    "B61": ("The final output does not hold what was written later.", "Integrate again."),
    "B62": ("Only the integration status says what was left out.", "Finish the integration."),
    "B63": ("It is not known whether its result went in.", "Finish the integration again."),
    "B64": ("Readers must know what is missing.", "Name it among the gaps."),
    "B65": ("Without its record nobody knows which version holds, and why.", "Resolve it."),
    "B66": ("Each category has its own rule; facts are never averaged.", "Resolve it anew."),
    "B67": ("Nobody knows which one is final.", "Move the others away."),
    "B68": ("Only the orchestrator writes there.", "Look at the file, and integrate again."),
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
