"""Folders whose files nobody else can have written or changed.

What is opened is looked at, not what a path names at some other time: a folder is opened first, its owner and mode are
those of the open folder, and its files are opened from there, never through a link. Windows opens files by their paths
only, and tells who may write by lists that modes do not show; profiles are private there, so nothing is looked at.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

BY_DESCRIPTOR = os.name != "nt" and os.open in os.supports_dir_fd
_BINARY, _CLOSED = getattr(os, "O_BINARY", 0), getattr(os, "O_CLOEXEC", 0)
_NO_LINK, _NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Folder:
    """An open folder, as a context manager. All methods raise OSError, a PermissionError where others may
    have been at work.
    """

    def __init__(self, path: Path, *, for_code: bool = True, within: Folder | None = None) -> None:
        """Open a folder; of one that is `within` another the last name is no link.

        for_code: it and its files are nobody else's, and nobody else may write to them. Without, files that are written
        are one's own, and nobody else's by another name or a link.
        """
        self.path = path
        self.for_code = for_code
        self.descriptor: int | None = None
        if not BY_DESCRIPTOR:
            if not path.is_dir():
                raise NotADirectoryError(f"{path} is not a folder")
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | _CLOSED
        if within is None:
            self.descriptor = os.open(path, flags)
        else:
            self.descriptor = os.open(path.name, flags | _NO_LINK, dir_fd=within.descriptor)
        reason = _objection(os.fstat(self.descriptor)) if for_code else ""
        if reason:
            self.close()
            raise PermissionError(f"{path} is not used: {reason}")

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder; files that it has opened stay open."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def inside(self, name: str, *, make: bool = False) -> Folder:
        """A subfolder; if it does not exist and `make` is set, it is created for its owner alone."""
        if make:
            with suppress(FileExistsError):
                os.mkdir(self._place(name), 0o700, dir_fd=self.descriptor)
        return Folder(self.path / name, for_code=self.for_code, within=self)

    def names(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self.path if self.descriptor is None else self.descriptor)

    def about(self, name: str) -> os.stat_result:
        """What the system says of a file or a link."""
        return os.stat(self._place(name), dir_fd=self.descriptor, follow_symlinks=False)

    def read(self, name: str) -> BinaryIO:
        """A file to read; a folder or a pipe is refused, because reading a pipe may wait forever."""
        descriptor = self._open(name, os.O_RDONLY | _NO_WAIT)
        return open(descriptor, "rb")

    def create(self, name: str) -> BinaryIO:
        """A new file to write, for its owner alone."""
        return open(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")

    def write(self, name: str, *, append: bool = False) -> BinaryIO:
        """A file to write, which may exist; its contents are lost unless `append` is set."""
        descriptor = self._open(name, os.O_WRONLY | os.O_CREAT | _NO_WAIT | (os.O_APPEND if append else 0))
        if not append:
            os.ftruncate(descriptor, 0)
        return open(descriptor, "ab" if append else "wb")

    def rename(self, name: str, new: str) -> None:
        """Rename a file; a file that has the new name is lost."""
        os.replace(self._place(name), self._place(new), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> bool:
        """Remove a file or a link if possible; return whether it was removed."""
        try:
            os.unlink(self._place(name), dir_fd=self.descriptor)
        except OSError:
            return False
        return True

    def folders(self) -> Iterator[Folder]:
        """The usable subfolders, each open during its iteration."""
        for name in sorted(self.names()):
            with suppress(OSError), self.inside(name) as folder:
                yield folder

    def _open(self, name: str, flags: int) -> int:
        flags |= _BINARY | _CLOSED | _NO_LINK
        descriptor = os.open(self._place(name), flags, 0o600 if self.for_code else 0o666, dir_fd=self.descriptor)
        about = os.fstat(descriptor)
        reason = "" if stat.S_ISREG(about.st_mode) else "it is not a file"
        if BY_DESCRIPTOR and not reason:
            reason = _objection(about, _OTHERS_WRITE if self.for_code else 0)
            if flags & os.O_WRONLY and about.st_nlink > 1:
                reason = "it has a second name"
        if reason:
            os.close(descriptor)
            raise PermissionError(f"{self.path / name} is not used: {reason}")
        return descriptor

    def _place(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)


def _objection(about: os.stat_result, forbidden: int = _OTHERS_WRITE) -> str:
    """Why a folder or a file must not be trusted; empty if it may. forbidden: bits of its mode."""
    if about.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others may write to it" if about.st_mode & forbidden else ""
