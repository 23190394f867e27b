"""All collaborations under some paths: found, opened, watched and read.

`Fleet` (live.py) is the whole; the other modules are its parts: which collaborations there are
(discovery.py), one of them (member.py), when it is looked at (watching.py) and read (readings.py), the
worker threads with what they tell the event loop (workers.py), and what is kept between runs
(kept_rows.py).
"""

from acp_core.fleet.live import Batch, Fleet, NoCollaboration

__all__ = ["Batch", "Fleet", "NoCollaboration"]
