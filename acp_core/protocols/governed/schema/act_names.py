"""The names of the acts, by which needs, rows, causes and findings name them."""

CREATE = "create"

STEP = "step"

STOP = "stop_turn"

CORRECT = "correct_result"

ACCEPT = "accept_turn"

REJECT = "reject_turn"

APPROVE_GATE = "approve_gate"

REJECT_GATE = "reject_gate"

ESCALATE = "escalate"

UNBLOCK = "unblock"

OBJECTION = "mark_objection"

TALK = "talk"

RECOVER = "recover"

BRING_BACK = "bring_back"

TAKE_FILES = "take_files"

SET_ASIDE = "set_aside"

TRUST = "trust"

MIGRATE = "migrate"

START = "start_initiative"

COORDINATE = "coordinate"

POLL = "poll"

APPROVE_BARRIER = "approve_barrier"

REJECT_BARRIER = "reject_barrier"

RESYNC = "resync"

MEND = "mend_workstream"

MEND_STATE = "mend_state"

TRUST_HOOKS = "trust_hooks"
