"""What is in the files of a folder collaboration, as types (`records`), and how its documents are read."""

from acp_core.protocols.folder.schema.records import *  # noqa: F403 (all of it)
