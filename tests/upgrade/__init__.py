"""What people have from earlier versions: files that these wrote, and processes that they started.

A sample is a person's folder as it stood when the machine went down (`tests.upgrade.samples`):

``sample-0.2.1.tar.xz``
    state, settings and collaborations of each protocol, with programs at work in each; folders shared over a repository (``store.git``) and a database (``store.sql``),
    a write that was killed between its files, loops that are idle, wait for a usage limit or have
    spent their budget, a live session that asks, what it was allowed and what a person answered,
    boot entries of systemd and cron, the skill, and the entries for Claude Code and Codex. Made by
    ``python -m tests.upgrade.make PATH_TO_ACP``, in about two minutes.

No process is known by its command line: a record names its process (``pid``, ``created``,
``since_boot``, ``boot``, see `acp_core.agents.processes.Identity`), or a lock is held as long as
it lives. So modules may be renamed. What may not change, or has to be read as before:

Folders and files, below the state folder (``$ACP_STATE``; digests are SHA-256, in hexadecimal)
    ``loops/FOLDER-PARTICIPANT-DIGEST/``, DIGEST of ``real path NUL participant``, 16 digits:
        ``lock`` (flock: whoever holds it is the only one), ``loop.json`` (`Saved`), ``spec.json``
        (what to run again), ``log``, ``turns.jsonl``, ``nudge.json``, ``runs/NNNNN.prompt|out|err``,
        ``drafts/``. Loops, watchers of sub-agents (participant: the agent; ``team.json`` lies with
        the participant ``orchestrator``), and orchestrators of cycles (participant
        ``orchestrator``; of each agent its own) all use it.
    ``governed/DIGEST/process.json`` (pid, created, since_boot, boot), ``stdout.log``,
        ``stderr.log``: DIGEST of ``real path NUL turn id``, 24 digits.
    ``governed/states/DIGEST.json`` of the real path, 24 digits: what a seal stands for.
    ``cycles/ID-DIGEST.json`` of ``real path NUL cycle id``: what acp wrote into a cycle last;
        ``cycles/DIGEST.json`` of the real path: which cycle is shown.
    ``recordings/FOLDER-DIGEST.recording``, ``acts/FOLDER-DIGEST.jsonl``, ``backups/FOLDER-DIGEST/``:
        of the real path, 16 digits. ``attention.json``, ``notices.json``.
    ``wire/NAME/``: ``lock`` (flock), ``agent.json``, ``wire.sqlite3``, and a folder for each program
        that answers, with ``lock`` (flock, the process id in it) and ``exit``.

Since 0.2, besides (DIGEST of the real path, 32 digits, where nothing else is said)
    ``FOLDER/.acp/run/NAME.lock`` (flock) and ``NAME.json`` (host, boot, pid and ticks of who holds
        a claim, and of its program): ``loops/PARTICIPANT``, ``conduct``, ``turns/TURN``.
    ``loops/.../live/session.json``: who holds a live session, and its agent; ``permissions/ID.json``:
        a request, and who asks; ``permissions/answered.jsonl``.
    ``parked/``: the socket, ``lock`` and ``alive`` of the supervisor. A parked loop is a shell that
        holds the claim's lock as 8 and its own as 9, and becomes ``python -m MODULE resume PLACE WHY``.
    ``sync/DIGEST`` of a store's address without ``#ID``, in it ``DIGEST.want``;
        ``asked/DIGEST.json`` of ``address NUL host``; the settings' ``shared/DIGEST.json``.
    ``budgets/DIGEST.json``, 24 digits; ``spent/DAY.jsonl``; ``installed/PROGRAM-DIGEST.json`` of
        ``skill NUL settings``, 16 digits.

Environment variables by which a program is found whose starter died before it noted it
    ``ACP_WORKSPACES_TASK``, ``ACP_CYCLE_RUN``, ``ACP_LIVE_SESSION``; ``ACP_GOVERNED_TURN`` marks what a turn's program does.

Names under which processes are started
    `acp_core.protocols.processes` holds them, with those that they had in 0.2: a program that
    was started before an upgrade in place starts others by these. ``acp`` (``acp_tui.__main__``)
    and ``python -m acp_core`` stand in prompts and in configuration files.

What runs while its modules are renamed under it goes on: loops and orchestrators of 0.2 try
again, take messages and stop without importing anything more. Only a watcher of sub-agents that is
through cannot dispatch the next agent then (it imports for that); ``acp workspaces dispatch`` does.
"""
