"""The key bindings of the screens about participants' loops and of the inbox (see `acp_tui.keys`)."""

from __future__ import annotations

from acp_tui.keys import bind

PARTICIPANT = (
    bind("participant.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("participant.search", "slash", "search", "Search", show=True, display="/"),
    bind("participant.follow", "F", "toggle_follow", "Follow", show=True,
         tooltip="Stay with the newest line; scrolling up stops it, the end begins it again"),
    bind("participant.wrap", "w", "toggle_wrap", "Wrap", show=True),
    bind("participant.raw", "r", "toggle_raw", "Raw", show=True,
         tooltip="What the program printed, as it was, or what it means"),
    bind("participant.nudge", "m", "nudge", "Message", show=True,
         tooltip="Have it begin its turn anew, with a message from you"),
    bind("participant.start", "L", "start", "Start", show=True,
         tooltip="Start its loop, or start it again; shows the command before"),
    bind("participant.stop", "S", "stop", "Stop", show=True,
         tooltip="Stop its loop, with the program that it runs"),
    bind("participant.next_match", "n", "match(1)", "Next match"),
    bind("participant.previous_match", "N", "match(-1)", "Match before"),
    bind("participant.next", "right_square_bracket", "step(1)", "Next participant", display="]"),
    bind("participant.previous", "left_square_bracket", "step(-1)", "Participant before",
         display="["),
)  # fmt: skip

INBOX = (
    bind("inbox.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("inbox.answer", "f", "answer", "Answer", show=True,
         tooltip="Do what settles it, in a form"),
    bind("inbox.acknowledge", "a", "acknowledge", "Acknowledge", show=True,
         tooltip="Take it off the list, with a note; a new reason shows again"),
    bind("inbox.snooze", "s", "snooze", "Snooze", show=True,
         tooltip="Put it off until something happens in its collaboration"),
    bind("inbox.copy", "y", "copy", "Copy"),
)  # fmt: skip

ALL = (*PARTICIPANT, *INBOX)
