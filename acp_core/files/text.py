"""As `acp_core.model.text`."""

from acp_core.model.text import *  # noqa: F403
