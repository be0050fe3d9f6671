"""The object cache on disk: plain bytes under a content key, verified on every read, never required for correctness.

Anything wrong with an entry, its folder or the disk is a miss, not an error. Entries are code that will run, so none is
read or written in a place that others may write to, see `fusec.base.folders`. Settings: FUSEC_CACHE=0 turns the cache
off, FUSEC_CACHE_DIR places it, FUSEC_CACHE_BYTES bounds it (512 MiB).
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, get_args

from fusec.base import dtypes, locks
from fusec.base.folders import Folder
from fusec.base.kernel_abi import Fp, Kernel, Layout, Slot, SlotKind, Step
from fusec.base.records import dataclass
from fusec.codegen import TARGETS
from fusec.environment import debug, settings

MAGIC = b"\x93FUSEC\r\n"  # the line end shows a transfer in text mode
FORMAT = 1
# magic, format, bytes of the label, bytes of the payload, sha256 of kind and key, sha256 of label and payload
HEADER = struct.Struct("<8sIIQ32s32s")
SUFFIX = ".entry"
USUAL_BYTES = 512 << 20
KEPT = 0.75  # of the bound, when it is exceeded
UNSEEN = 1 / 64  # of the bound: so much may be put, at least, before the next look at all entries
DAY = 86400.0  # seconds; a use is noted in the file's time at most this often
ABANDONED = 3600.0  # seconds after which a temporary file has lost its writer


@dataclass(frozen=True)
class Entry:
    """One file of the cache; `label` describes it, mtime (seconds since 1970) is the time of its last use."""

    kind: str
    label: str
    size: int
    mtime: float
    path: Path


class Cache:
    """A folder of entries shared by all processes of one user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._left: float | None = None  # bytes that are put before the next look

    def get(self, kind: str, key: str) -> bytes | None:
        """The payload of this kind and key, or None; a damaged entry is removed."""
        name = _name(kind, key)
        try:
            with self._kind(kind) as folder:
                return self._found(folder, name, _digest(kind, key))
        except PermissionError as error:
            debug.show(1, f"cache: {error}", "")
        except OSError:
            pass
        return None

    def has(self, kind: str, key: str) -> bool:
        """Whether there is an entry of this kind and key, which may be damaged."""
        return (self.path / kind / _name(kind, key)).is_file()

    def _found(self, folder: Folder, name: str, digest: bytes) -> bytes | None:
        with folder.read(name) as stream:
            found = _open_envelope(stream.read(), digest)
            if found is not None:
                if time.time() - os.fstat(stream.fileno()).st_mtime > DAY:
                    with suppress(OSError):
                        os.utime(stream.fileno() if os.utime in os.supports_fd else folder.path / name)
                return found[1]
        debug.show(1, f"cache: removed the damaged entry {name}", "")
        folder.remove(name)
        return None

    def put(self, kind: str, key: str, payload: bytes, label: str = "") -> None:
        """Store a payload; failures are ignored.

        label: what `list` shows for it.
        """
        name = _name(kind, key)
        temporary = f".{name.removesuffix(SUFFIX)}.{os.getpid()}.{threading.get_ident()}.tmp"
        envelope = _envelope(payload, label, _digest(kind, key))
        try:
            with self._kind(kind, make=True) as folder:
                try:
                    _write_new(folder, temporary, envelope)
                    folder.rename(temporary, name)
                except OSError:
                    folder.remove(temporary)
                    raise
        except OSError as error:  # full, read-only, gone or open to others
            debug.show(1, f"cache: not written, {error}", "")
            return
        self._keep_bound(len(envelope))

    def _keep_bound(self, put: int) -> None:
        """Remove the oldest entries if there is too much.

        To look at all of them takes as long as to compile a few kernels, so it happens when a part of the room may be
        filled. Other processes fill it too.
        """
        bound = _bound()
        with locks.lock:
            if self._left is None:  # at random, for many short processes
                self._left = os.urandom(1)[0] / 256 * UNSEEN * bound
            self._left -= put
            if self._left >= 0:
                return
            self._left = UNSEEN * bound  # no other thread looks meanwhile
        total: float = sum(entry.size for entry in self._entries(is_labelled=False))
        if total > bound:
            total = KEPT * bound
            self.prune(max_bytes=int(total))
        with locks.lock:
            self._left = max((bound - total) / 4, UNSEEN * bound)

    def list(self) -> list[Entry]:
        """All entries, the least recently used first."""
        return _oldest_first(self._entries())

    def prune(self, max_bytes: int | None = None, older_than: float | None = None) -> int:
        """Remove entries unused for `older_than` seconds, then the oldest until `max_bytes` remain.

        Returns how many were removed.
        """
        now = time.time()
        entries = _oldest_first(self._entries(is_labelled=False))
        total = sum(entry.size for entry in entries)
        removed = 0
        for entry in entries:
            stale = older_than is not None and now - entry.mtime > older_than
            if stale or (max_bytes is not None and total > max_bytes):
                total -= entry.size
                removed += self._remove(entry)
        for folder, name in self._files(".", ".tmp"):
            with suppress(OSError):
                if now - folder.about(name).st_mtime > ABANDONED:
                    folder.remove(name)
        return removed

    def clear(self) -> int:
        """Remove every entry; return the number removed."""
        return sum(folder.remove(name) for folder, name in self._files("", SUFFIX))

    def _remove(self, entry: Entry) -> bool:
        with suppress(OSError), self._kind(entry.kind) as folder:
            return folder.remove(entry.path.name)
        return False

    def _kind(self, kind: str, *, make: bool = False) -> Folder:
        """The folder of a kind of entries, open. Raises OSError."""
        assert kind.isidentifier(), f"{kind!r} does not name a folder"
        with Folder(self.path) as whole:
            return whole.inside(kind, make=make)

    def _files(self, begin: str, end: str) -> Iterator[tuple[Folder, str]]:
        with suppress(OSError), Folder(self.path) as whole:
            for folder in whole.folders():
                for name in folder.names():
                    if name.startswith(begin) and name.endswith(end):
                        yield folder, name

    def _entries(self, is_labelled: bool = True) -> Iterator[Entry]:
        """All entries. is_labelled: they are opened, to read their labels, and what is no entry is left out."""
        for folder, name in self._files("", SUFFIX):
            with suppress(OSError, ValueError, struct.error):
                label, about = "", folder.about(name)
                if is_labelled:
                    with folder.read(name) as stream:
                        label_bytes = HEADER.unpack(stream.read(HEADER.size))[2]
                        label = stream.read(min(label_bytes, 4096)).decode(errors="replace")
                yield Entry(folder.path.name, label, about.st_size, about.st_mtime, folder.path / name)


def _oldest_first(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.mtime)


def default_cache() -> Cache | None:
    """The user's cache; None if it is off, or if its folder cannot be created or is open to others.

    Raises SettingNotUnderstood for any setting that means nothing: whatever compiles asks here first.
    """
    settings.check()
    if settings.value_of("FUSEC_CACHE") is False:
        return None
    folder = _folder()
    return None if folder is None else _cache_at(folder)


@cache
def _cache_at(path: Path) -> Cache | None:
    """One Cache per folder and process, after a look at the folder; says so once if it cannot be used."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        Folder(path).close()
    except OSError as error:
        debug.show(1, f"cache: {error}", "")
        return None
    return Cache(path)


def _folder() -> Path | None:
    """FUSEC_CACHE_DIR, or ``fusec`` where the system keeps caches; None without a home."""
    asked = settings.text_of("FUSEC_CACHE_DIR")
    if asked:
        return Path(asked).absolute()
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "fusec" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "fusec"
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else home / ".cache") / "fusec"  # relative ones are to be ignored, says XDG


def digest(text: str) -> str:
    """The digest of a text, for keys."""
    return _sha256(text.encode(errors="surrogatepass")).hex()


def _sha256(data: bytes) -> bytes:
    """The digest of bytes."""
    from hashlib import sha256  # takes 2 ms to import, which programs without kernels need not spend

    return sha256(data).digest()


# --- kernels as bytes ------------------------------------------------------------------------------------------------

LENGTHS = struct.Struct("<II")  # bytes of the JSON record and of the deflated source, which the object follows


def pack_kernel(kernel: Kernel, object_bytes: bytes) -> bytes:
    """A kernel with its machine code as bytes, for `unpack_kernel`."""
    layout = kernel.layout
    record = {
        "name": kernel.name,
        "target": kernel.target,
        "slots": [[slot.kind, slot.param, slot.axis, slot.dtype.name] for slot in kernel.slots],
        "layout": {
            "ndim": layout.ndim,
            "steps": [[name, "".join(step.value for step in row)] for name, row in layout.steps],
            "raw": layout.raw,
            "c_order": layout.c_order,
            "wide": layout.wide,
            "aligned": layout.aligned,
            "ragged": layout.ragged,
            "streaming": layout.streaming,
            "tiled": layout.tiled,
            "strips": layout.strips,
            "by_chunks": layout.by_chunks,
        },
        "lanes": kernel.lanes,
        "cost": kernel.cost,
        "notes": kernel.notes,
        "fills": kernel.fills,
        "group": kernel.group,
        "block": kernel.block,
        "cluster": kernel.cluster,
        "share": kernel.share,
        "rows": kernel.rows,
        "fp": kernel.fp,
        "is_record": kernel.is_record,
        "cuts": _cuts(kernel),
    }
    import json

    head = json.dumps(record).encode()
    source = zlib.compress(kernel.source.encode(), 1)
    return LENGTHS.pack(len(head), len(source)) + head + source + object_bytes


def _cuts(kernel: Kernel) -> list[tuple[str, int, int]]:
    """Where the parts of a kernel lie in its source; none if they do not."""
    found, end = [], 0
    for name, text in kernel.parts:
        start = kernel.source.find(text, end)
        if start < 0:
            return []
        end = start + len(text)
        found.append((name, start, end))
    return found


def unpack_kernel(data: bytes) -> tuple[Kernel, bytes] | None:
    """The kernel and machine code of `pack_kernel`; None if the bytes are not a record of this version."""
    import json

    try:
        head_bytes, source_bytes = LENGTHS.unpack_from(data)
        start = LENGTHS.size + head_bytes
        end = start + source_bytes
        if end > len(data):
            return None
        record = json.loads(data[LENGTHS.size : start])
        source = zlib.decompress(data[start:end]).decode()
        return _kernel(record, source), data[end:]
    except (struct.error, zlib.error, ValueError, KeyError, TypeError):
        return None


def _kernel(record: dict[str, Any], source: str) -> Kernel:
    """Raises one of the errors above for anything a Kernel cannot be made of."""
    layout = dict(record["layout"])
    layout["steps"] = tuple((str(name), tuple(Step(step) for step in row)) for name, row in layout["steps"])
    layout["raw"] = tuple((str(name), (int(ndim), bool(contiguous))) for name, (ndim, contiguous) in layout["raw"])
    slots = tuple(
        Slot(kind, str(param), int(axis), dtypes.BY_NAME[name]) for kind, param, axis, name in record["slots"]
    )
    if (
        record["fp"] not in get_args(Fp)
        or record["target"] not in TARGETS
        or any(slot.kind not in get_args(SlotKind) for slot in slots)
    ):
        raise ValueError("a kernel of another version")
    return Kernel(
        name=str(record["name"]),
        target=record["target"],
        slots=slots,
        source=source,
        layout=Layout(**layout),
        lanes=int(record["lanes"]),
        cost=int(record["cost"]),
        notes=tuple(record["notes"]),
        fills=tuple(record["fills"]),
        group=int(record["group"]),
        block=int(record["block"]),
        cluster=int(record["cluster"]),
        share=int(record["share"]),
        rows=int(record["rows"]),
        fp=record["fp"],
        is_record=bool(record["is_record"]),
        parts=tuple((str(name), source[int(start) : int(stop)]) for name, start, stop in record["cuts"]),
    )


# --- files -----------------------------------------------------------------------------------------------------------


def _bound() -> int:
    """Bytes that the cache may take."""
    asked = settings.number_of("FUSEC_CACHE_BYTES")
    return USUAL_BYTES if asked is None else asked


def _digest(kind: str, key: str) -> bytes:
    return _sha256(f"{kind}\0{key}".encode(errors="surrogatepass"))


def _envelope(payload: bytes, label: str, digest: bytes) -> bytes:
    """The bytes of a file."""
    name = label.encode(errors="replace")
    checksum = _sha256(name + payload)
    return HEADER.pack(MAGIC, FORMAT, len(name), len(payload), digest, checksum) + name + payload


def _open_envelope(data: bytes, digest: bytes) -> tuple[str, bytes] | None:
    """(label, payload) of a file's bytes; None unless every part is as `_envelope` made it for this digest."""
    if len(data) < HEADER.size:
        return None
    magic, version, label_bytes, payload_bytes, found, checksum = HEADER.unpack_from(data)
    body = data[HEADER.size :]
    if (magic, version, found) != (MAGIC, FORMAT, digest) or len(body) != label_bytes + payload_bytes:
        return None
    if _sha256(body) != checksum:
        return None
    return body[:label_bytes].decode(), body[label_bytes:]


def _name(kind: str, key: str) -> str:
    return _digest(kind, key).hex()[:40] + SUFFIX


def _write_new(folder: Folder, name: str, data: bytes) -> None:
    with folder.create(name) as stream:
        stream.write(data)
