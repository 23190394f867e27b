"""The smallest Textual program that changes what it shows: it counts the keys."""

from __future__ import annotations

from textual import events
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Static


class Echo(App[None]):
    """Shows how many keys were pressed."""

    count = 0

    def compose(self) -> ComposeResult:
        """The count, once there is one."""
        yield Static("painted", id="text")

    def on_key(self, event: events.Key) -> None:
        """Count it."""
        self.count += 1
        self.query_one("#text", Static).update(Content(f"pressed {self.count} times"))


if __name__ == "__main__":
    Echo().run()
