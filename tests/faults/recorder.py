"""What a process does to files, call by call, as sentences: "write a", "sync a", "rename b a".

Installed in a forked child of `shim`; paths below the command's root are relative to it. What a
library writes by itself (SQLite) is not seen: `straced` sees that.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import os
from collections.abc import Callable
from typing import Any

_ONE_PATH = {"unlink": "unlink", "remove": "unlink", "rmdir": "unlink", "mkdir": "mkdir"}
_TWO_PATHS = {"replace": "rename", "rename": "rename", "link": "link"}
_BY_DESCRIPTOR = {"fsync": "sync", "fdatasync": "sync", "ftruncate": "cut"}


class Recorder:
    """Records the calls that change files or bring them to the disk.

    Attributes:
        calls: those, as sentences.
        data: of each, what was written and where: "OFFSET HEX" of a write, "SIZE" of a cut, else "".
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.data: list[str] = []
        self._open: dict[int, str] = {}

    def install(self) -> None:
        """Listen from now on."""
        wrappers = {"open": self._opening, "write": self._writing, "close": self._closing}
        for name, wrapper in wrappers.items():
            setattr(os, name, wrapper(getattr(os, name)))
        for name, word in _ONE_PATH.items():
            setattr(os, name, self._naming(word, getattr(os, name), 1))
        for name, word in _TWO_PATHS.items():
            setattr(os, name, self._naming(word, getattr(os, name), 2))
        for name, word in _BY_DESCRIPTOR.items():
            if hasattr(os, name):
                setattr(os, name, self._on_descriptor(word, getattr(os, name)))
        os.truncate = self._naming("cut", os.truncate, 1)
        builtins.open = io.open = self._opening_file(io.open)  # type: ignore[assignment]

    def _note(self, word: str, *paths: object, data: str = "") -> None:
        self.data.append(data)
        named = (os.path.abspath(os.fspath(path)) for path in paths)  # type: ignore[call-overload]
        self.calls.append("\0".join((word, *map(os.fsdecode, named))))

    def _opening(self, real: Any) -> Callable[..., int]:
        def call(path: Any, flags: int, *args: Any, **more: Any) -> int:
            new = flags & os.O_CREAT and not os.path.lexists(path)
            fd: int = real(path, flags, *args, **more)
            self._open[fd] = os.path.abspath(os.fsdecode(path))
            if new:
                self._note("create", path)
            return fd

        return call

    def _opening_file(self, real: Any) -> Callable[..., Any]:
        def call(path: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
            file = real(path, mode, *args, **more)
            if not isinstance(path, int):
                self._open[file.fileno()] = os.path.abspath(os.fsdecode(path))
                if set(mode) & set("wax+"):
                    self._note("write", path)
            return file

        return call

    def _writing(self, real: Any) -> Callable[..., int]:
        def call(fd: int, data: Any) -> int:
            at = _offset(fd) if fd in self._open else 0
            done: int = real(fd, data)
            if fd in self._open:
                written = bytes(data)[:done].hex()
                self._note("write", self._open[fd], data=f"{at} {written}")
            return done

        return call

    def _closing(self, real: Any) -> Callable[[int], None]:
        def call(fd: int) -> None:
            self._open.pop(fd, None)
            real(fd)

        return call

    def _naming(self, word: str, real: Any, paths: int) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            done = real(*args, **more)  # what fails has changed nothing
            self._note(word, *args[:paths])
            return done

        return call

    def _on_descriptor(self, word: str, real: Any) -> Callable[..., Any]:
        def call(fd: int, *args: Any) -> Any:
            if fd in self._open:
                self._note(word, self._open[fd], data=str(args[0]) if word == "cut" else "")
            return None if word == "sync" else real(fd, *args)  # nobody pulls the plug here

        return call


def _offset(fd: int) -> int:
    """Where the next write goes."""
    appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
    return os.fstat(fd).st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
