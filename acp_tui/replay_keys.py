"""The key bindings of the screens about the past (see `acp_tui.keys`)."""

from __future__ import annotations

from acp_tui.keys import bind

REPLAY = (
    bind("replay.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("replay.previous", "left,comma", "step(-1)", "Before", show=True, display="←"),
    bind("replay.next", "right,full_stop", "step(1)", "Next", show=True, display="→"),
    bind("replay.previous_event", "shift+left,less_than_sign", "jump('event', -1)",
         "Event before"),
    bind("replay.next_event", "shift+right,greater_than_sign", "jump('event', 1)", "Next event"),
    bind("replay.play", "space", "play", "Play / pause", show=True),
    bind("replay.faster", "plus", "pace(1)", "Faster", display="+"),
    bind("replay.slower", "minus", "pace(-1)", "Slower", display="-"),
    bind("replay.next_phase", "f", "jump('phase', 1)", "Next phase", show=True),
    bind("replay.previous_phase", "F", "jump('phase', -1)", "Phase before"),
    bind("replay.next_stall", "s", "jump('stall', 1)", "Next stall", show=True,
         tooltip="A wait that was unusually long for this collaboration (inferred)"),
    bind("replay.previous_stall", "S", "jump('stall', -1)", "Stall before"),
    bind("replay.next_finding", "e", "jump('findings', 1)", "Next finding"),
    bind("replay.previous_finding", "E", "jump('findings', -1)", "Finding before"),
    bind("replay.first", "left_curly_bracket", "end(-1)", "The beginning", display="{"),
    bind("replay.last", "right_curly_bracket", "end(1)", "The end", display="}"),
    bind("replay.pick", "g", "pick", "Go to a moment", tooltip="Choose among all moments"),
    bind("replay.mark", "M", "mark", "Mark", tooltip="Compare from here"),
    bind("replay.compare", "C", "compare", "Compare", show=True,
         tooltip="The shown document between the mark (or its version before) and here"),
)  # fmt: skip

COMPARE = (
    bind("compare.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("compare.whole", "w", "toggle_whole", "Whole / changes", show=True),
    bind("compare.rendered", "r", "toggle_rendered", "Rendered / raw", show=True),
    bind("compare.sides", "v", "toggle_sides", "Side by side", show=True),
    bind("compare.next", "n", "change(1)", "Next change", show=True),
    bind("compare.previous", "N", "change(-1)", "Change before"),
    bind("compare.document", "d", "pick_document", "Another document", show=True),
)  # fmt: skip

TIMES = (
    bind("times.back", "escape,q", "back", "Back", show=True, display="esc"),
    bind("times.beside", "c", "beside", "Beside another", show=True,
         tooltip="The figures of another collaboration of the same kind"),
    bind("times.chain", "n", "chain", "Chain", show=True,
         tooltip="Those that it continues and that continue it, as one story"),
    bind("times.alone", "a", "alone", "Alone", show=True),
)  # fmt: skip

ALL = (*REPLAY, *COMPARE, *TIMES)
