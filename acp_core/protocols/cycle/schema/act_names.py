"""The names of the acts, by which needs, rows and causes name them."""

START = "start"

RUN = "run"

DECIDE = "decide"

RESOLVE = "resolve"

FEEDBACK = "feedback"

EXTEND = "extend"

PAUSE = "pause"

RESUME = "resume"

STOP = "stop"

ACCEPT = "accept"

RERUN = "rerun"

LIMIT = "limit"

REBUILD = "rebuild"

SELECT = "select"
