"""The headless half of acp: read, validate, write and run collaborations, without a terminal."""

import sys

__version__ = "0.2.1"

if sys.argv[:1] == ["-m"] and "acp_core" not in sys.orig_argv:  # a module of it is being started
    from acp_core.protocols import processes

    processes.follow()
