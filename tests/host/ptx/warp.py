"""Warp-wide instructions: shuffles, votes, matches, reductions over the lanes that the member mask names."""

from collections.abc import Callable

import numpy as np

from ptx.faults import WarpDivergence
from ptx.group import Group

Array = np.ndarray
FULL = 0xFFFFFFFF


class Lanes:
    """The group's threads as rows of 32 lanes, one for each warp of the batch."""

    def __init__(self, group: Group) -> None:
        self.warp, self.lane = group.places.warps, group.machine.lanes[group.threads]
        self.rows = group.machine.warp_count

    def table(self, values: Array, missing: object = 0) -> Array:
        """Values by warp and lane."""
        found = np.full((self.rows, 32), missing, values.dtype)
        found[self.warp, self.lane] = values
        return found

    def present(self) -> Array:
        """For each warp the lanes of the group, as a mask."""
        return self.ballot(np.ones(len(self.lane), bool))

    def ballot(self, holds: Array) -> Array:
        """For each warp the lanes where something holds, as a mask."""
        bits = self.table(holds, False).astype(np.uint64) << np.arange(32, dtype=np.uint64)
        return bits.sum(axis=1).astype(np.uint32)

    def named(self, masks: Array) -> Array:
        """For each thread and lane, whether the thread's mask names the lane."""
        return (masks[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)).astype(bool)


def complete(group: Group, masks: Array) -> Array:
    """Which threads have all lanes of their member mask beside them.

    Raises WarpDivergence if a thread is missing in its own mask, or two that take part gave different masks.
    """
    lanes = Lanes(group)
    own = masks >> lanes.lane.astype(np.uint32) & np.uint32(1)
    if not own.all():
        at = int(np.flatnonzero(own == 0)[0])
        raise WarpDivergence(f"lane {lanes.lane[at]} is not in its own member mask {masks[at]:#x}")
    is_ready = lanes.present()[lanes.warp] & masks == masks
    same = lanes.table(masks)[lanes.warp] == masks[:, None]
    wrong = is_ready & ~(same | ~lanes.named(masks)).all(axis=1)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise WarpDivergence(f"lanes named by the member mask {masks[at]:#x} gave other masks")
    return is_ready


def shuffle(mode: str, group: Group, value: Array, by: Array, limits: Array, masks: Array) -> tuple[Array, Array]:
    """shfl.sync: the value of another lane, and whether it was in range. Raises WarpDivergence for an absent source."""
    lanes = Lanes(group)
    lane, by = lanes.lane.astype(np.int64), (by & np.uint32(31)).astype(np.int64)
    limits = limits.astype(np.int64)
    segment, clamp = limits >> 8 & 31, limits & 31
    last = lane & segment | clamp & ~segment
    source = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": lane & segment | by & ~segment}[mode]
    in_range = source >= last if mode == "up" else source <= last
    source = np.where(in_range, source, lane)
    is_member = (lanes.present()[lanes.warp] & masks) >> source.astype(np.uint32) & np.uint32(1)
    if not is_member.all():
        at = int(np.flatnonzero(is_member == 0)[0])
        raise WarpDivergence(f"lane {lane[at]} reads lane {source[at]}, which is not in the member mask {masks[at]:#x}")
    return lanes.table(value)[lanes.warp, source], np.broadcast_to(in_range, lane.shape)


def vote(mode: str, group: Group, holds: Array, masks: Array) -> Array:
    """vote.sync over the named lanes: all, any, uni, or the ballot as a mask."""
    lanes = Lanes(group)
    votes = lanes.ballot(np.broadcast_to(holds, lanes.lane.shape))[lanes.warp] & masks
    match mode:
        case "ballot":
            return votes
        case "any":
            return votes != 0
        case "all":
            return votes == masks
        case "uni":
            return (votes == 0) | (votes == masks)
    raise AssertionError(f"no vote is called {mode}")


def match(group: Group, values: Array, masks: Array) -> Array:
    """match.any.sync: the named lanes with the same value, as a mask."""
    lanes = Lanes(group)
    same = (lanes.table(values)[lanes.warp] == values[:, None]) & lanes.named(masks)
    return (same.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=1).astype(np.uint32)


def active(group: Group) -> Array:
    """activemask: the lanes that run now."""
    lanes = Lanes(group)
    return lanes.present()[lanes.warp]


_REDUCTIONS: dict[str, tuple[Callable[..., Array], int | None]] = {
    "add": (np.add.reduce, 0),
    "min": (np.minimum.reduce, None),
    "max": (np.maximum.reduce, None),
    "and": (np.bitwise_and.reduce, -1),
    "or": (np.bitwise_or.reduce, 0),
    "xor": (np.bitwise_xor.reduce, 0),
}


def reduce(op: str, group: Group, values: Array, masks: Array) -> Array:
    """redux.sync over the named lanes."""
    lanes = Lanes(group)
    function, neutral = _REDUCTIONS[op]
    if neutral is None:
        info = np.iinfo(values.dtype)
        neutral = info.max if op == "min" else info.min
    filler = np.array(neutral, np.int64).astype(values.dtype) if neutral in (0, -1) else values.dtype.type(neutral)
    table = np.where(lanes.named(masks), lanes.table(values)[lanes.warp], filler)
    return function(table, axis=1).astype(values.dtype)
