"""`python -m tests.fuzz`: random programs for every door, until a number of them or of seconds is reached.

Exit status 1 if anything was found; every finding is a line of JSON in the file of findings, and
`python -m tests.fuzz --replay DOOR SEED` checks one program again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.fuzz.doors import BLOCK, DOORS, enter
from tests.fuzz.findings import FindingError
from tests.fuzz.runner import Runner, tasks_of

SHORT, BRIEF = 100, 60  # runs of fewer seconds have tasks of so many programs, to come to all doors


def main(argv: list[str]) -> int:
    """Run; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=1_000_000, help="how many in all (default: a million)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop (default: never)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: as many as cores)")
    parser.add_argument("--seed0", type=int, default=0, help="the first seed of every door (default: 0)")
    parser.add_argument("--door", action="append", choices=DOORS, help="only this door; may be given several times")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings.jsonl"), help="where findings are kept")
    parser.add_argument("--replay", nargs=2, metavar=("DOOR", "SEED"), help="check one program in this process")
    parser.add_argument("--block", action="store_true", help="with --replay: after those before it in its block")
    args = parser.parse_args(argv)
    if args.replay:
        return replay(args.replay[0], int(args.replay[1]), args.block)
    doors = args.door or [door for door in DOORS if DOORS[door].share]
    whole = sum(DOORS[door].share for door in doors) or 1.0
    counts = {door: round(args.programs * DOORS[door].share / whole) for door in doors}
    started = time.monotonic()
    runner = Runner(max(args.jobs, 1), args.seconds, args.findings)
    size = BLOCK if args.seconds > SHORT else BRIEF
    found = runner.run(tasks_of(counts, args.seed0, size))
    print(runner.summary(time.monotonic() - started))
    return 1 if found else 0


def replay(door: str, seed: int, whole_block: bool) -> int:
    """Check one program, and say what is wrong."""
    enter(seed)
    check = DOORS[door].check
    for each in range(seed - seed % BLOCK if whole_block else seed, seed + 1):
        try:
            check(each)
        except FindingError as found:
            if each == seed:
                print(found)
                return 1
    print(f"{door} {seed}: nothing wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
