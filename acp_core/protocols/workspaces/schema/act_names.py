"""The names of the actions, by which needs, rows and causes name them."""

CREATE = "create"

DISPATCH = "dispatch"

TRIAGE = "triage"

AGAIN = "rerun"

STOP = "stop"

MORE = "add"

FIND = "compare"

ADD = "dispute"

RESOLVE = "resolve"

DISMISS = "dismiss"

ORDER = "order"

DRAFT = "draft"

SYNTHESISE = "synthesise"

FINISH = "finish"

REPAIR = "repair"

EVERY = frozenset(
    {
        *(CREATE, DISPATCH, TRIAGE, AGAIN, STOP, MORE, FIND, ADD),
        *(RESOLVE, DISMISS, ORDER, DRAFT, SYNTHESISE, FINISH, REPAIR),
    }
)
