"""What kind of file system a path is on: whether locks hold there, and changes are announced.

Linux only (``/proc/self/mountinfo``); elsewhere the answer is "not known", and nobody is
bothered. Standard library only.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

MOUNTS = "/proc/self/mountinfo"

# A lock taken on one of these is not seen by everybody who can write there.
NO_LOCKS = frozenset(
    {"9p", "afs", "cifs", "coda", "davfs", "drvfs", "ncpfs", "prl_fs", "smb3", "smbfs", "vboxsf",
     "vmhgfs", "fuse.davfs", "fuse.dropbox", "fuse.gcsfuse", "fuse.google-drive-ocamlfuse",
     "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse"}
)  # fmt: skip
# Locks hold between hosts only with the right mount options, or only on this host.
DOUBTFUL_LOCKS = frozenset(
    {"beegfs", "ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.grpcfuse", "fuse.juicefs",
     "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "orangefs", "virtiofs"}
)  # fmt: skip


class Mount(NamedTuple):
    """A mounted file system: its type as the system names it, and where it is mounted."""

    type: str
    point: str

    @property
    def remote(self) -> bool:
        """Whether others may write there without this host being told: look again by the clock."""
        return self.type in NO_LOCKS or self.type in DOUBTFUL_LOCKS or self.type.startswith("fuse.")


def mount_of(path: str | os.PathLike[str], table: str = MOUNTS) -> Mount | None:
    """The file system that ``path`` is on (it need not exist); None where that is not known."""
    try:
        with open(table, "rb") as file:
            lines = file.read(8 << 20).split(b"\n")
    except OSError:
        return None
    real = os.path.realpath(path)
    found: Mount | None = None
    for line in lines:
        mount = _parse(os.fsdecode(line))
        # Of two mounts on one point the later one hides the earlier.
        if (
            mount
            and _inside(real, mount.point)
            and len(mount.point) >= len(found.point if found else "")
        ):
            found = mount
    return found


def _parse(line: str) -> Mount | None:
    before, separator, after = line.partition(" - ")
    fields = before.split(" ")
    if not separator or len(fields) < 5:
        return None
    return Mount(after.split(" ")[0], _OCTAL.sub(lambda m: chr(int(m.group(1), 8)), fields[4]))


_OCTAL = re.compile(r"\\([0-7]{3})")  # how the table writes blanks and backslashes


def _inside(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
