"""Saving what is on the screen as a picture (SVG)."""

from __future__ import annotations

from datetime import datetime
from io import StringIO

from textual import on
from textual.events import DeliveryComplete, DeliveryFailed

from acp_tui.saying import Saying

NAME = "picture"
"""By this name a delivery is known to be ours (Textual announces its own as markup)."""


class Pictures(Saying):
    """An app that can save a picture of itself, where it runs or in the browser."""

    def take_picture(self) -> None:
        """Save the screen as it is when the command palette is gone."""
        self.set_timer(0.1, self._deliver_picture)

    def _deliver_picture(self) -> None:
        name = f"acp-{datetime.now():%Y-%m-%d-%H%M%S}.svg"
        picture = StringIO(self.export_screenshot(title="acp"))
        self.deliver_text(picture, save_filename=name, name=NAME)

    @on(DeliveryComplete)
    def _delivered(self, event: DeliveryComplete) -> None:
        if event.name == NAME:
            self.tell(f"Saved {event.path}" if event.path else "Saved")

    @on(DeliveryFailed)
    def _not_delivered(self, event: DeliveryFailed) -> None:
        if event.name == NAME:
            self.tell(f"The picture could not be saved: {event.exception}", "error")
