"""Many processes that check programs: who works on what, who has crashed or hangs, and what was found."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.fuzz.doors import BLOCK, DOORS, environment

ROOT = Path(__file__).parents[2]
WALL = 180.0  # seconds without a word after which a process hangs, however busy the machine is


@dataclass
class Task:
    """Programs of a door that one process checks."""

    door: str
    first: int
    stop: int


@dataclass
class Worker:
    """A process at work. seed: the program it is at, None between two."""

    task: Task
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    seed: int | None = None
    heard: float = field(default_factory=time.monotonic)
    rest: bytes = b""


@dataclass
class Tally:
    """What one door came to."""

    programs: int = 0
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, -1)


def tasks_of(counts: dict[str, int], first: int, size: int = BLOCK) -> Iterator[Task]:
    """The tasks of all doors, each door as far as the others at any time. size: of tasks at most, in programs."""
    counts = {door: count for door, count in counts.items() if count}
    given = dict.fromkeys(counts, 0)
    while any(given[door] < counts[door] for door in counts):
        door = min(counts, key=lambda door: given[door] / counts[door])
        start = first + given[door]
        stop = min(start - start % BLOCK + BLOCK, start + size, first + counts[door])
        given[door] = stop - first
        yield Task(door, start, stop)


class Runner:
    """Runs tasks on `jobs` processes until they are done or `seconds` are over; findings go to a file as they come."""

    def __init__(self, jobs: int, seconds: float, findings: Path) -> None:
        self.jobs, self.findings = jobs, findings
        self.until = time.monotonic() + seconds
        self.tallies = {door: Tally() for door in DOORS}
        self.found: Counter[str] = Counter()
        self.selector = selectors.DefaultSelector()
        self.workers: list[Worker] = []
        self.left: list[Task] = []

    def run(self, tasks: Iterable[Task]) -> int:
        """Check all programs, and return the number of findings."""
        coming = iter(tasks)
        try:
            while True:
                while len(self.workers) < self.jobs and time.monotonic() < self.until:
                    task = self.left.pop() if self.left else next(coming, None)
                    if task is None:
                        break
                    self.start(task)
                if not self.workers:
                    return sum(self.found.values())
                self.listen()
                if time.monotonic() > self.until:
                    return sum(self.found.values())
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.wait()

    def start(self, task: Task) -> None:
        """A process for a task."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        command = [sys.executable, "-m", "tests.fuzz.worker", task.door, str(task.first), str(task.stop)]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, env=os.environ | environment(task.first)
        )
        worker = Worker(task, process, errors)
        self.workers.append(worker)
        self.selector.register(process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]

    def listen(self) -> None:
        """Take what processes write; look after those that are silent for too long."""
        for key, _ in self.selector.select(1.0):
            self.read(key.data)
        for worker in list(self.workers):
            if time.monotonic() - worker.heard > WALL:
                worker.process.send_signal(signal.SIGPROF)  # which writes a traceback before it ends the process
                worker.heard = time.monotonic()

    def read(self, worker: Worker) -> None:
        """The lines of a process; its end, when there are no more."""
        data = os.read(worker.process.stdout.fileno(), 1 << 16)  # type: ignore[union-attr]
        worker.heard = time.monotonic()
        *lines, worker.rest = (worker.rest + data).split(b"\n")
        for line in lines:
            self.take(worker, json.loads(line))
        if not data:
            self.end(worker)

    def take(self, worker: Worker, facts: dict[str, Any]) -> None:
        """One line of a process."""
        if "begin" in facts:
            worker.seed = facts["begin"]
        elif "end" in facts:
            worker.seed = None
            tally = self.tallies[worker.task.door]
            tally.programs, tally.seconds = tally.programs + 1, tally.seconds + facts["took"]
            tally.slowest = max(tally.slowest, (facts["took"], facts["end"]))
        elif "kind" in facts:
            self.report(worker.task.door, **facts)

    def end(self, worker: Worker) -> None:
        """A process has ended: at the end of its task, or in the middle of a program, and then others take the rest."""
        self.selector.unregister(worker.process.stdout)  # type: ignore[arg-type]
        worker.process.stdout.close()  # type: ignore[union-attr]
        status = worker.process.wait()
        self.workers.remove(worker)
        if status:
            worker.errors.seek(0)
            errors = worker.errors.read().decode(errors="replace")[-6000:]
            seed = worker.task.first if worker.seed is None else worker.seed
            kind = "hang" if status == -signal.SIGPROF else "crash" if worker.seed is not None else "fuzzer"
            self.report(worker.task.door, seed, kind, f"status {status}\n{errors}", "")
            if worker.seed is not None and seed + 1 < worker.task.stop:
                self.left.append(Task(worker.task.door, seed + 1, worker.task.stop))
        worker.errors.close()

    def report(self, door: str, seed: int, kind: str, detail: str, text: str) -> None:
        """Write down a finding."""
        self.found[kind] += 1
        row = {"door": door, "seed": seed, "kind": kind, "detail": detail, "text": text}
        with self.findings.open("a") as file:
            file.write(json.dumps(row | {"environment": environment(seed)}) + "\n")
        print(f"{door} {seed}: {kind}: {detail.strip().splitlines()[-1] if detail.strip() else ''}"[:200], flush=True)

    def summary(self, wall: float) -> str:
        """A line for each door."""
        lines = []
        for door, tally in self.tallies.items():
            if tally.programs:
                each = tally.seconds / tally.programs * 1e3
                slowest = f"slowest {tally.slowest[0]:.2f} s (seed {tally.slowest[1]})"
                rate = f"{tally.programs / wall:.0f} programs/s"
                lines.append(f"{door}: {tally.programs} programs, {rate}, {each:.1f} ms of CPU each, {slowest}")
        total = sum(tally.programs for tally in self.tallies.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.found.most_common()) or "no findings"
        return "\n".join([*lines, f"{total} programs in {wall:.0f} s: {kinds}"])
