"""Which kind of file system a path is on: whether changes by others are seen, and locks hold.

The kernel tells of changes that pass through this machine. On a file system that other
machines write too (or the host of a virtual machine does) that is not all of them, and a lock
taken here may mean nothing there. Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from acp_core.model.light import NamedTuple

MOUNTS = "/proc/self/mountinfo"

# Written from elsewhere too: other machines, or the host of a virtual machine.
SHARED = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "virtiofs", "afs", "ceph", "coda",
        "glusterfs", "lustre", "beegfs", "gpfs", "ocfs2", "gfs2", "davfs",
        "drvfs", "vboxsf", "vmhgfs", "prl_fs",
    }
)  # fmt: skip
# Programs that show a file system: most of them reach over the network, these do not.
_LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.bindfs", "fuse.gocryptfs", "fuse.encfs",
     "fuse.ntfs-3g", "fuse.mergerfs", "fuse.portal"}
)  # fmt: skip
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
_OCTAL = r"\\([0-7]{3})"  # compiled where it is needed: seldom


class Mount(NamedTuple):
    """Where a file system begins, and its kind."""

    point: str
    kind: str


def parse(text: str) -> tuple[Mount, ...]:
    """The mounts that the text of ``/proc/self/mountinfo`` lists; other lines are left out."""
    mounts: list[Mount] = []
    for line in text.splitlines():
        place, separator, system = line.partition(" - ")
        fields, kinds = place.split(), system.split()
        if separator and len(fields) >= 5 and kinds:
            point = fields[4]
            if "\\" in point:
                point = re.sub(_OCTAL, lambda found: chr(int(found[1], 8)), point)
            mounts.append(Mount(point, kinds[0]))
    return tuple(mounts)


def here() -> tuple[Mount, ...]:
    """The mounts of this process; none where the system does not tell."""
    try:
        with open(MOUNTS, "rb") as file:
            return parse(os.fsdecode(file.read()))
    except OSError:
        return ()


def kind(path: str | os.PathLike[str], mounts: Iterable[Mount]) -> str:
    """The kind of the file system that ``path`` is on, "" where unknown."""
    real = os.path.realpath(path)
    found = Mount("", "")
    for mount in mounts:
        root = mount.point.rstrip("/")
        inside = real == mount.point or real.startswith(root + "/")
        if inside and len(mount.point) >= len(found.point):  # a later mount covers an earlier
            found = mount
    return found.kind


class Kinds:
    """The kinds of file systems as they are mounted now, looked up once for every device."""

    def __init__(self) -> None:
        self._mounts = here()
        self._by_device: dict[int, str] = {}

    def of(self, path: str | os.PathLike[str], device: int) -> str:
        """The kind of the file system that ``path`` is on, "" where unknown.

        Args:
            path: a file or folder.
            device: its device, as a stat call gives it.
        """
        if device not in self._by_device:
            self._by_device[device] = kind(path, self._mounts)
        return self._by_device[device]


def is_shared(kind: str) -> bool:
    """Whether others can change this kind of file system without the kernel here seeing it."""
    return kind in SHARED or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)
