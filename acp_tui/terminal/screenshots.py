"""Pictures of the dashboard, saved where it runs or in the browser."""

from __future__ import annotations

from datetime import datetime
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.events import DeliveryComplete, DeliveryFailed

    from acp_tui.app import AcpApp

NAME = "screenshot of acp"
"""What the delivery is called: Textual announces its own as markup, which ours is not."""


class Screenshots:
    """Saves the screen of an app as SVG.

    Args:
        app: The dashboard.
    """

    def __init__(self, app: AcpApp) -> None:
        self._app = app

    def take_soon(self) -> None:
        """Save the screen as it is when the command palette is gone."""
        self._app.set_timer(0.1, self._deliver)

    def _deliver(self) -> None:
        name = f"acp-{datetime.now():%Y-%m-%d-%H%M%S}.svg"
        picture = StringIO(self._app.export_screenshot(title="acp"))
        self._app.deliver_text(picture, save_filename=name, name=NAME)

    def report(self, event: DeliveryComplete | DeliveryFailed) -> None:
        """Say where the picture was saved, or why it was not."""
        if event.name != NAME:
            return
        path, problem = getattr(event, "path", None), getattr(event, "exception", None)
        if problem is not None:
            self._app.tell(f"Could not save the screenshot: {problem}", "error")
        else:
            self._app.tell(f"Saved {path}" if path else "Saved")
