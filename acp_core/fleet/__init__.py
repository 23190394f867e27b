"""All collaborations under some paths: found, opened, watched and read.

`Fleet` (live.py) is the whole; the other modules are its parts: one collaboration of it
(member.py), the worker threads (workers.py), what other threads tell the event loop
(mailbox.py), what is told and when (outbox.py), and participants' loops (loop_watch.py).
"""

from acp_core.fleet.live import Batch, Fleet, NoCollaboration

__all__ = ["Batch", "Fleet", "NoCollaboration"]
