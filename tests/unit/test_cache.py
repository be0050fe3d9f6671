"""The cache on disk never gives back anything but what was put, and never gets in the way."""

import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusec.base.dtypes import COMPLEX128, FLOAT32, INT64
from fusec.base.folders import Folder
from fusec.base.kernel_abi import Kernel, Layout, Slot, Step
from fusec.compiler import disk_cache
from fusec.compiler.disk_cache import Cache, default_cache, pack_kernel, unpack_kernel

posix = pytest.mark.skipif(os.name == "nt", reason="modes and owners are those of POSIX")
unprivileged = pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is read-only to root")

KERNEL = Kernel(
    name="k",
    target="llvm",
    slots=(Slot("size", "", 0, INT64), Slot("pointer", "x", 0, FLOAT32), Slot("scalar", "c", 1, COMPLEX128)),
    source="define void @k() { ret void } ; \N{GREEK SMALL LETTER ALPHA}",
    layout=Layout(
        2, (("x", (Step.ANY, Step.UNIT)), ("y", (Step.ZERO, Step.ZERO))), (("r", (3, True)),), False, True, 4
    ),
    lanes=16,
    cost=7,
    notes=("vectors of 16",),
    fills=("y",),
)


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def only_file(store: Cache) -> Path:
    (entry,) = store.list()
    return entry.path


@given(payload=st.binary(max_size=300), key=st.text(), label=st.text(max_size=20))
def test_what_was_put_comes_back(
    tmp_path_factory: pytest.TempPathFactory, payload: bytes, key: str, label: str
) -> None:
    store = Cache(tmp_path_factory.mktemp("cache"))
    store.put("object", key, payload, label)
    assert store.get("object", key) == payload
    assert store.get("grammar", key) is None
    assert store.get("object", key + "x") is None


def test_a_later_payload_replaces_the_earlier(store: Cache) -> None:
    store.put("object", "k", b"one")
    store.put("object", "k", b"two")
    assert store.get("object", "k") == b"two"
    assert len(store.list()) == 1


def test_any_change_of_a_byte_makes_a_miss_and_removes_the_entry(store: Cache) -> None:
    store.put("object", "k", b"payload", "label")
    intact = only_file(store).read_bytes()
    for at in range(len(intact)):
        store.put("object", "k", b"payload", "label")
        file = only_file(store)
        file.write_bytes(intact[:at] + bytes([intact[at] ^ 0x10]) + intact[at + 1 :])
        assert store.get("object", "k") is None, f"byte {at}"
        assert not file.exists()


@pytest.mark.parametrize("kept", [0, 1, 40, 87, 88, 94])
def test_a_truncated_or_longer_entry_is_a_miss(store: Cache, kept: int) -> None:
    for change in (lambda data: data[:kept], lambda data: data + bytes(kept + 1)):
        store.put("object", "k", b"payload")
        file = only_file(store)
        file.write_bytes(change(file.read_bytes()))
        assert store.get("object", "k") is None


def test_an_entry_under_the_name_of_another_key_is_a_miss(store: Cache) -> None:
    store.put("object", "a", b"payload of a")
    file = only_file(store)
    store.put("object", "b", b"payload of b")
    (other,) = (entry.path for entry in store.list() if entry.path != file)
    other.write_bytes(file.read_bytes())
    assert store.get("object", "b") is None
    assert store.get("object", "a") == b"payload of a"


def test_a_folder_in_place_of_an_entry_is_a_miss(store: Cache) -> None:
    store.put("object", "k", b"payload")
    file = only_file(store)
    file.unlink()
    file.mkdir()
    assert store.get("object", "k") is None
    store.put("object", "k", b"payload")  # cannot replace a folder, and says nothing
    assert store.get("object", "k") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_in_place_of_an_entry_is_a_miss(store: Cache) -> None:
    store.put("object", "k", b"payload")
    file = only_file(store)
    file.unlink()
    os.mkfifo(file)
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.extend((store.get("object", "k"), store.list())), daemon=True)
    reader.start()
    reader.join(10)
    assert found == [None, []]
    store.put("object", "k", b"payload")
    assert store.get("object", "k") == b"payload"


def test_a_folder_that_is_gone_or_a_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for path in (tmp_path / "file", tmp_path / "gone"):
        store = Cache(path)
        store.put("object", "k", b"payload")
        assert store.get("object", "k") is None
        assert store.list() == []
        assert store.clear() == 0


@unprivileged
def test_a_read_only_folder_is_passed_over(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    store = Cache(tmp_path)
    store.put("object", "k", b"payload")
    assert store.get("object", "k") is None
    tmp_path.chmod(0o700)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_leaves_no_trace(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_to_full(folder: Folder, name: str, data: bytes) -> None:
        (folder.path / name).write_bytes(data[:10])
        with open("/dev/full", "wb", buffering=0) as stream:
            stream.write(data)

    monkeypatch.setattr(disk_cache, "_write_new", write_to_full)
    store.put("object", "k", b"payload")
    assert store.get("object", "k") is None
    assert [file for file in store.path.rglob("*") if file.is_file()] == []


def test_readers_see_whole_entries_while_threads_write(store: Cache) -> None:
    payloads = {bytes([number]) * 5000 for number in range(8)}
    store.put("object", "k", next(iter(payloads)))
    stop, wrong = threading.Event(), []

    def write(payload: bytes) -> None:
        while not stop.is_set():
            store.put("object", "k", payload)

    def read() -> None:
        while not stop.is_set():
            found = store.get("object", "k")
            if found not in payloads:
                wrong.append(found)

    workers = [threading.Thread(target=write, args=(payload,)) for payload in payloads]
    workers += [threading.Thread(target=read) for _ in range(2)]
    for worker in workers:
        worker.start()
    time.sleep(0.3)
    stop.set()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_processes_share_the_cache(tmp_path: Path) -> None:
    script = (
        "import sys; from fusec.compiler.disk_cache import *;"
        "default_cache().put('object', sys.argv[1], sys.argv[1].encode())"
    )
    environment = os.environ | {"FUSEC_CACHE_DIR": str(tmp_path), "FUSEC_CACHE": "1"}
    started = [subprocess.Popen([sys.executable, "-c", script, key], env=environment) for key in ("a", "b", "a")]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert [Cache(tmp_path).get("object", key) for key in ("a", "b")] == [b"a", b"b"]


def test_pruning_removes_the_oldest_first_and_abandoned_files(store: Cache) -> None:
    now = time.time()
    for age in (3, 1, 2):
        store.put("object", str(age), bytes(1000), f"label {age}")
        (file,) = (entry.path for entry in store.list() if entry.label == f"label {age}")
        os.utime(file, (now - 1000 * age, now - 1000 * age))
    abandoned = store.path / "object" / ".x.1.2.tmp"
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (now - 10 * disk_cache.ABANDONED,) * 2)
    assert [entry.label for entry in store.list()] == ["label 3", "label 2", "label 1"]
    assert store.prune(max_bytes=2500) == 1
    assert [entry.label for entry in store.list()] == ["label 2", "label 1"]
    assert store.prune(older_than=1500) == 1
    assert [(entry.kind, entry.label) for entry in store.list()] == [("object", "label 1")]
    assert not abandoned.exists()
    assert store.clear() == 1
    assert store.list() == []


def test_the_bound_is_kept_without_being_asked(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEC_CACHE_BYTES", "20000")
    for number in range(130):
        store.put("object", str(number), bytes(1000))
        assert sum(entry.size for entry in store.list()) <= 20000
    assert store.get("object", "129") == bytes(1000)
    for number in range(130, 260):  # of many short processes
        Cache(store.path).put("object", str(number), bytes(100))
        assert sum(entry.size for entry in store.list()) <= 23000  # some do not look


def test_all_entries_are_seldom_looked_at_however_many_there_are(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, entries = [], Cache._entries
    monkeypatch.setattr(Cache, "_entries", lambda *given, **how: (looks.append(given), entries(*given, **how))[1])
    monkeypatch.setenv("FUSEC_CACHE_BYTES", "400000")
    for number in range(1200):
        store.put("object", str(number), bytes(400))
    assert 3 <= len(looks) <= 120


@pytest.mark.parametrize("value", ["0", "off", "No"])
def test_the_cache_can_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FUSEC_CACHE", raising=False)
    assert default_cache() is not None
    monkeypatch.setenv("FUSEC_CACHE", value)
    assert default_cache() is None


@posix
def test_the_folder_is_private_and_one_open_to_others_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FUSEC_CACHE", raising=False)
    monkeypatch.setenv("FUSEC_DEBUG", "1")
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path / "new"))
    made = default_cache()
    assert made is not None
    assert made.path.stat().st_mode & 0o777 == 0o700
    made.put("object", "k", b"payload")
    assert only_file(made).stat().st_mode & 0o077 == 0
    assert only_file(made).parent.stat().st_mode & 0o077 == 0
    for mode in (0o770, 0o707, 0o777):
        shared = tmp_path / f"open{mode:o}"
        shared.mkdir()
        shared.chmod(mode)
        monkeypatch.setenv("FUSEC_CACHE_DIR", str(shared))
        assert default_cache() is None
        assert default_cache() is None
    assert capsys.readouterr().err.count("others may write to it") == 3, "said once for each folder"


@posix
def test_the_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FUSEC_CACHE", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert default_cache() is None


@posix
def test_a_folder_of_entries_that_others_may_write_to_is_not_used(
    store: Cache, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEC_DEBUG", "1")
    store.put("object", "k", b"payload")
    for mode in (0o777, 0o770, 0o707):
        (store.path / "object").chmod(mode)
        assert store.get("object", "k") is None
        store.put("object", "other", b"payload")
        assert store.list() == []
        assert store.clear() == 0
    assert "others may write to it" in capsys.readouterr().err
    (store.path / "object").chmod(0o700)
    assert store.get("object", "k") == b"payload"
    assert store.get("object", "other") is None
    store.path.chmod(0o777)
    assert store.get("object", "k") is None
    store.path.chmod(0o700)


@posix
def test_an_entry_that_others_may_write_to_is_not_used_and_replaced(store: Cache) -> None:
    store.put("object", "k", b"payload")
    for mode in (0o666, 0o620, 0o602):
        only = next(file for file in (store.path / "object").iterdir())
        only.chmod(mode)
        assert store.get("object", "k") is None
        assert store.list() == []
        store.put("object", "k", b"payload")
        assert store.get("object", "k") == b"payload"
        assert only_file(store).stat().st_mode & 0o777 == 0o600


@posix
def test_no_link_is_followed(store: Cache, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Cache(tmp_path_factory.mktemp("other"))
    other.put("object", "k", b"payload")
    (store.path / "object").symlink_to(other.path / "object", target_is_directory=True)
    assert store.get("object", "k") is None
    store.put("object", "new", b"payload")
    assert store.clear() == store.prune(max_bytes=0) == 0
    assert [entry.path for entry in other.list()] == [only_file(other)]
    (store.path / "object").unlink()
    (store.path / "object").mkdir(mode=0o700)
    entry = store.path / "object" / only_file(other).name
    entry.symlink_to(only_file(other))
    assert store.get("object", "k") is None
    store.put("object", "k", b"mine")
    assert (store.get("object", "k"), other.get("object", "k")) == (b"mine", b"payload")
    assert not entry.is_symlink()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_what_another_user_owns_is_not_used(store: Cache) -> None:
    store.put("object", "k", b"payload")
    for owned in (only_file(store), store.path / "object", store.path):
        os.chown(owned, 12345, -1)
        assert store.get("object", "k") is None
        os.chown(owned, os.geteuid(), -1)
        assert store.get("object", "k") == b"payload"


@posix
def test_the_folder_follows_the_desktop_standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("FUSEC_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert disk_cache._folder() == tmp_path / "xdg" / "fusec"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert disk_cache._folder() == tmp_path / "home" / ".cache" / "fusec"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert disk_cache._folder() == tmp_path / "home" / "Library" / "Caches" / "fusec"


# --- kernels as bytes ------------------------------------------------------------------------------------------------


@given(code=st.binary(max_size=100), cost=st.integers(1, 10**6), notes=st.lists(st.text(max_size=9), max_size=3))
def test_a_packed_kernel_unpacks_to_itself(code: bytes, cost: int, notes: list[str]) -> None:
    kernel = replace(KERNEL, cost=cost, notes=tuple(notes))
    assert unpack_kernel(pack_kernel(kernel, code)) == (kernel, code)


@pytest.mark.parametrize("name", [each.name for each in fields(Kernel) if isinstance(getattr(KERNEL, each.name), int)])
def test_every_number_of_a_kernel_is_kept(name: str) -> None:
    before = getattr(KERNEL, name)
    kernel = replace(KERNEL, **{name: not before if isinstance(before, bool) else before + 3})
    assert unpack_kernel(pack_kernel(kernel, b"")) == (kernel, b"")


def test_a_truncated_record_is_none() -> None:
    record = pack_kernel(KERNEL, b"")
    assert unpack_kernel(record) is not None
    for kept in range(len(record)):
        assert unpack_kernel(record[:kept]) is None


@pytest.mark.parametrize(("old", "new"), [(b'"llvm"', b'"vulk"'), (b'"size"', b'"sise"'), (b"float32", b"float33")])
def test_a_record_with_unknown_names_is_none(old: bytes, new: bytes) -> None:
    record = pack_kernel(KERNEL, b"code")
    assert record.count(old) == 1
    assert unpack_kernel(record.replace(old, new)) is None


@pytest.mark.slow
def test_a_touched_source_of_the_package_renames_every_kernel(tmp_path: Path) -> None:
    """Each file of a copy is touched in turn; the copy lies as a wheel has it."""
    import fusec.grammar
    import fusec.runtime

    for package in (fusec, fusec.grammar, fusec.runtime):
        source, name = Path(package.__path__[0]), package.__name__.replace(".", os.sep)
        ignored = shutil.ignore_patterns("__pycache__", *(("grammar", "runtime") if package is fusec else ()))
        shutil.copytree(source, tmp_path / name, ignore=ignored)
    code = """
import os, pathlib
from fusec.compiler import pipeline
def digest():
    pipeline._build.cache_clear()
    return pipeline._build()
def touched(file):
    before = digest()
    os.utime(file, ns=(0, 12345))
    return digest() != before
files = [each for each in pathlib.Path("fusec").rglob("*") if each.suffix in (".py", ".lark", ".json")]
assert digest() == digest()
assert {"kinds/scan.py", "runtime/cpu/jit.py", "grammar/kernel.lark", "grammar/kernel.json"} <= {
    file.relative_to("fusec").as_posix() for file in files
}
print([str(file) for file in files if not touched(file)])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
