"""Governed runs made of files alone, as the existing program writes them, and damaged ones."""

from __future__ import annotations

from tests.golden.builders.governed import EVENTS, HISTORY, LEDGER, STATE, Object, Place, lines
from tests.protocols.governed import making

RUN, TURN = "run_00000000000000f1", making.TURN
AT, LATER = "2026-01-22T10:00:00.000Z", "2026-01-22T10:20:00.000Z"
HOSTILE = "\x1b[31mred\x1b[0m [b]bold[/b] \u202egnol <script>alert(1)</script> | `x`\n# Heading"


def state(**more: object) -> Object:
    """The state of a run that is under way in its first phase."""
    return making.state(**{"run_id": RUN, "created_at": AT, "phase_entered_at": AT} | more)


def turn(**more: object) -> Object:
    """The active turns of a run in which the planner is at work."""
    return {TURN: making.turn(**{"run_id": RUN, "assigned_at": AT} | more)}


def accepted(**more: object) -> Object:
    """A line of the history: the planner's accepted turn."""
    return making.accepted(**{"run_id": RUN, "accepted_at": LATER} | more)


def hook(mode: str) -> Object:
    """A hook that does nothing."""
    return {"name": "note", "type": "process", "command": ["true"], "mode": mode}


def make(place: Place, of_state: Object, *history: Object, **of_config: object) -> None:
    """A run with the bundle of each of its turns."""
    place.write("agentxchain.json", making.config(**of_config))
    place.write(STATE, of_state)
    place.write(HISTORY, lines(*history))
    place.write("TALK.md", "# Talk\n")
    for name in of_state.get("active_turns", {}):
        place.write(f".agentxchain/dispatch/turns/{name}/ASSIGNMENT.json", {"turn_id": name})


def at_work(place: Place) -> None:
    """A turn under way for weeks."""
    make(place, state(active_turns=turn(status="running")))


def overdue(place: Place) -> None:
    """A turn whose deadline is over."""
    make(place, state(active_turns=turn(deadline_at=LATER)))


def failed_start(place: Place) -> None:
    """A run that is blocked because nobody took its turn, whose result is there all the same."""
    told = f"Turn {TURN} was dispatched 600s ago and no program took it."
    recovery = {"typed_reason": "ghost_turn", "owner": "human", "recovery_action": told,
                "detail": told}  # fmt: skip
    reason = {"category": "ghost_turn", "recovery": recovery, "blocked_at": LATER}
    turns = turn(status="failed_start", failed_start_reason="runtime_spawn_failed")
    make(place, state(status="blocked", blocked_on=f"turn:failed_start:{TURN}",
                      blocked_reason=reason, active_turns=turns))  # fmt: skip
    staged = accepted()
    del staged["phase"], staged["accepted_at"]
    place.write(f".agentxchain/staging/{TURN}/turn-result.json", staged)


def gate_waits(place: Place) -> None:
    """A gate that waits for a human, with its evidence, events and ledger."""
    pending = {"from": "planning", "to": "implementation", "gate": "planning_done",
               "requested_by_turn": TURN, "requested_at": LATER}  # fmt: skip
    waits = state(status="paused", blocked_on="human_approval:planning_done",
                  pending_phase_transition=pending, last_completed_turn_id=TURN)  # fmt: skip
    make(place, waits, accepted())
    place.write(".planning/PM_SIGNOFF.md", "# Signoff\n\nApproved: YES\n")
    decision = {"id": "DEC-001", "turn_id": TURN, "role": "pm", "phase": "planning",
                "category": "scope", "statement": "One lamp.", "rationale": "Hall.",
                "status": "accepted", "created_at": LATER}  # fmt: skip
    place.write(LEDGER, lines(decision))
    kinds = (("run_started", AT), ("turn_dispatched", AT), ("turn_accepted", LATER),
             ("gate_pending", LATER))  # fmt: skip
    place.write(EVENTS, lines(*(
        {"event_id": f"evt_{n}", "event_type": kind, "timestamp": at, "run_id": RUN,
         "phase": "planning", "status": "active", "payload": {}}
        for n, (kind, at) in enumerate(kinds)
    )))  # fmt: skip


def limits(place: Place) -> None:
    """What a run may spend, and what only the existing program carries out."""
    delegation = {"delegation_id": "del-001", "parent_role": "pm", "to_role": "dev",
                  "charter": "Measure the hall", "status": "pending"}  # fmt: skip
    of_state = state(
        active_turns=turn(),
        budget_status={"spent_usd": 1.5, "remaining_usd": 48.5},
        budget_reservations={TURN: {"reserved_usd": 2, "role_id": "pm"}},
        delegation_queue=[delegation],
    )
    policy = {"id": "no-secrets", "rule": "forbid_paths", "action": "block"}
    make(
        place,
        of_state,
        budget={"per_turn_max_usd": 2, "per_run_max_usd": 50, "on_exceed": "pause_and_escalate"},
        policies=[policy],
        approval_policy={"phase_transitions": {"default": "require_human"}},
        rules={"max_turn_retries": 2, "mandatory_objections": True},
    )
    raised = {
        "kind": "raised",
        "escalation_id": "hesc_1",
        "type": "needs_legal",
        "detail": "Licence",
    }
    place.write(".agentxchain/human-escalations.jsonl", lines(raised))
    decision = {"id": "DEC-007", "statement": "Lamps are round.", "status": "active"}
    place.write(".agentxchain/repo-decisions.jsonl", lines(decision))


def unfinished(place: Place) -> None:
    """The existing program left a note of what it had begun to write."""
    make(place, state(active_turns=turn()))
    note = {"transaction_id": "txn_00000000000000cc", "kind": "accept_turn", "status": "prepared",
            "prepared_at": AT, "turn_id": TURN, "history_entry": accepted()}  # fmt: skip
    place.write(".agentxchain/transactions/accept/txn_00000000000000cc.json", note)


def checkpoint(place: Place) -> None:
    """The existing program's checkpoint tells something else than the state."""
    make(place, state(), accepted(phase_transition_request=None))
    session = {"schema_version": "1.0", "session_id": "session_1", "run_id": "run_other",
               "phase": "verification", "last_turn_id": "turn_other", "run_status": "blocked",
               "last_checkpoint_at": AT}  # fmt: skip
    place.write(".agentxchain/session.json", session)


def earlier(place: Place) -> None:
    """A run of an earlier version, without versions and without an id."""
    of_state, described = state(run_id=None), making.config()
    del of_state["schema_version"], described["schema_version"]
    make(place, of_state)
    place.write("agentxchain.json", described)


def third_form(place: Place) -> None:
    """The form of version 3."""
    make(place, state())
    agents = {"pm": {"name": "Planner", "mandate": "Plan."}}
    place.write("agentxchain.json", {"version": 3, "project": "lamp", "agents": agents})


def config_unreadable(place: Place) -> None:
    """A configuration that is torn."""
    make(place, state(active_turns=turn()))
    place.write("agentxchain.json", '{"schema_version": "1.0", "project": ')


def config_unsound(place: Place) -> None:
    """A configuration that names what is not there."""
    make(
        place,
        state(),
        routing={"planning": {"entry_role": "ghost", "exit_gate": "nowhere"}},
        approval_policy={"phase_transitions": {"default": "auto_approve"}},
        prompts={"pm": "../outside.md"},
    )


def config_only(place: Place) -> None:
    """A configuration, and nothing that was begun."""
    place.write("agentxchain.json", making.config())


def odd_logs(place: Place) -> None:
    """Logs with lines of any kind, an acceptance twice, and a decision without its turn."""
    make(place, state(), accepted(), accepted(), {"turn_id": 7}, {"turn_id": "turn_x", "role": []})
    place.append(HISTORY, "[1, 2]\n\nnot json\n" + '{"turn_id": "turn_torn"')
    place.write(LEDGER, lines({"id": "DEC-009", "turn_id": "turn_none"}, None, "text"))
    place.write(EVENTS, lines({"event_type": "turn_accepted"}, {"timestamp": "yesterday"}, 3))


def hostile(place: Place) -> None:
    """Texts that try to be more than text."""
    make(
        place,
        state(active_turns=turn(failed_start_reason=HOSTILE), blocked_on=HOSTILE, status="blocked"),
        accepted(
            summary=HOSTILE,
            role=HOSTILE,
            objections=[{"id": HOSTILE, "severity": HOSTILE, "statement": HOSTILE,
                         "status": "raised"}],
            files_changed=["../../etc/passwd", HOSTILE],
        ),
        project={"id": HOSTILE, "name": HOSTILE, "goal": HOSTILE * 50},
    )  # fmt: skip
    place.write("TALK.md", HOSTILE)
