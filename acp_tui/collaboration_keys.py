"""The key bindings of the collaboration screen and its widgets (see `acp_tui.keys`)."""

from __future__ import annotations

from acp_tui import loop_keys, replay_keys
from acp_tui.keys import bind

SCREEN = (
    bind("collaboration.back", "escape,q", "back", "Back", show=True),
    bind("collaboration.actions", "m,colon", "actions", "Actions", show=True,
         tooltip="Everything that you can do in this collaboration"),
    bind("collaboration.timeline", "1", "pane('timeline')", "Timeline"),
    bind("collaboration.documents", "2", "pane('documents')", "Documents, or overview"),
    bind("collaboration.findings", "3", "pane('findings')", "Findings"),
    bind("collaboration.next", "4", "pane('next')", "Next"),
    bind("collaboration.left", "h", "step(-1)", "Pane before"),
    bind("collaboration.right", "l", "step(1)", "Pane after"),
    bind("collaboration.zoom", "z", "zoom", "Zoom", show=True,
         tooltip="Give the whole space to this pane, or give it back"),
    bind("collaboration.next_tab", "right_square_bracket", "tab(1)", "Next tab",
         display="]"),
    bind("collaboration.previous_tab", "left_square_bracket", "tab(-1)", "Tab before",
         display="["),
    bind("collaboration.document", "d", "pick_document", "Go to a tab",
         tooltip="Choose among all documents and panels"),
    bind("collaboration.why", "w", "why", "Why it does not go on",
         tooltip="Each cause with its evidence, and what mends it"),
    bind("collaboration.people", "P", "people", "People and their loops"),
    bind("collaboration.replay", "R", "replay", "Replay",
         tooltip="Its past, moment by moment; what became of its documents"),
    bind("collaboration.times", "T", "times", "Where the time went",
         tooltip="Who did what when, drawn, and all figures; others beside it"),
    bind("collaboration.log", "p", "log", "Participant's log",
         tooltip="What a participant's loop does, and its log"),
    bind("collaboration.before", "less_than_sign", "lineage('continues')", "What this continues",
         display="<"),
    bind("collaboration.after", "greater_than_sign", "lineage('continued_by')",
         "What continues this", display=">"),
    bind("collaboration.next_pane", "tab", "focus_pane(1)", "Next pane"),
    bind("collaboration.previous_pane", "shift+tab", "focus_pane(-1)", "Pane before"),
)  # fmt: skip

TIMELINE = (
    bind("timeline.open", "enter", "open", "Details", show=True, display="enter",
         tooltip="All fields of the event, and the document that it speaks of"),
    bind("timeline.search", "slash", "search", "Search", show=True, display="/"),
    bind("timeline.next_match", "n", "match(1)", "Next match"),
    bind("timeline.previous_match", "N", "match(-1)", "Match before"),
    bind("timeline.filter", "F,ampersand", "filter", "Filter", show=True,
         tooltip="By participant, kind of event and words"),
    bind("timeline.time", "t", "toggle_relative", "Clock / ago",
         tooltip="Show when events were, or how long ago"),
    bind("timeline.reply", "r", "reply", "Go to what it replies to"),
    bind("timeline.unread", "u", "unread", "Go to the first new event"),
    bind("timeline.copy", "y", "copy", "Copy as JSON"),
    bind("timeline.clear", "escape", "clear", "Close the details, the search, the filter"),
)  # fmt: skip

TYPED = (
    bind("typed.cancel", "escape", "cancel", "Cancel", show=True, display="esc"),
)  # fmt: skip

DOCUMENT = (
    bind("document.raw", "r", "toggle_raw", "Raw / rendered", show=True),
    bind("document.changes", "c", "toggle_changes", "Changes", show=True,
         tooltip="What changed since you last looked, line by line"),
    bind("document.outline", "t", "outline", "Contents", show=True,
         tooltip="Choose a heading to go to"),
    bind("document.next_change", "n", "change(1)", "Next change"),
    bind("document.previous_change", "N", "change(-1)", "Change before"),
    bind("document.seen", "s", "seen", "Mark as seen"),
    bind("document.edit", "e", "edit", "Edit", show=True, tooltip="Open it in your editor"),
    bind("document.copy_path", "y", "copy_path", "Copy its path"),
)  # fmt: skip

SCROLL = (
    bind("scroll.up", "up,k", "scroll_up", "Up"),
    bind("scroll.down", "down,j", "scroll_down", "Down"),
    bind("scroll.page_up", "pageup", "page_up", "Page up"),
    bind("scroll.page_down", "pagedown,space", "page_down", "Page down"),
    bind("scroll.first", "home,g", "scroll_home", "Top"),
    bind("scroll.last", "end,G", "scroll_end", "End"),
)  # fmt: skip

CHOOSE = (
    bind("list.choose", "enter", "choose", "Open", show=True, display="enter"),
)  # fmt: skip

FINDINGS = (
    bind("findings.fix", "f", "fix", "Fix", show=True, tooltip="Do what the finding asks for"),
    bind("findings.copy", "y", "copy", "Copy the finding"),
)  # fmt: skip

PANEL = (
    bind("panel.filter", "slash,F", "filter", "Filter", show=True, display="/",
         tooltip="Show only the rows that hold the words; column:word for one column"),
    bind("panel.clear", "escape", "clear", "Show all rows"),
)  # fmt: skip

TREE = (
    bind("tree.fold", "space", "fold", "Fold / unfold"),
    bind("tree.unfold_all", "asterisk", "unfold_all", "Unfold all", display="*"),
    bind("tree.copy", "y", "copy", "Copy the value"),
)  # fmt: skip

PICKING = (
    bind("picking.close", "escape", "close", "Close", show=True, display="esc"),
    bind("picking.up", "up,ctrl+p", "move(-1)", "Up"),
    bind("picking.down", "down,ctrl+n", "move(1)", "Down"),
    bind("picking.page_up", "pageup", "move(-10)", "Page up"),
    bind("picking.page_down", "pagedown", "move(10)", "Page down"),
)  # fmt: skip

LINK = (
    bind("link.open", "enter", "open", "Open", show=True, display="enter"),
    bind("link.copy", "y", "copy", "Copy", show=True),
    bind("link.close", "escape,q,n", "close", "Leave it", show=True),
)  # fmt: skip

ALL = (
    *SCREEN, *TIMELINE, *TYPED, *DOCUMENT, *SCROLL, *CHOOSE, *FINDINGS, *PANEL, *TREE, *PICKING, *LINK,
    *loop_keys.ALL, *replay_keys.ALL,
)  # fmt: skip
