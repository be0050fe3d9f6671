"""Operators as builtins, which are made in the background once something has been evaluated.

Python's functions record the same and stay: for builds whose objects cannot be read, for steps that are new, and for
operands of other types.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from fusec.base import background, locks
from fusec.environment import debug
from fusec.xp.claims import Owner
from fusec.xp.forms import form
from fusec.xp.operators import RECORDERS, Recorder
from fusec.xp.recording import EAGER_BLOCKS, Recorded, with_form
from fusec.xp.sharing import TAPES, WRITTEN, forget_some
from fusec.xp.tape import Tape
from fusec.xp.trie import TRIE, TapeState, Trie


def ask_for_builtins() -> None:
    """Have builtins made in the background."""
    background.submit(_install)


def _install() -> None:
    with suppress(Exception):  # Python's functions go on
        install()


def install() -> None:
    """Let builtins record all operators from now on, if there can be any."""
    with locks.lock:
        from fusec.compiler.disk_cache import default_cache
        from fusec.runtime.cpu.operators import OperatorForm, OperatorMaker, as_method

    array: Any = with_form(np.zeros(1), form(np.dtype("f8"), (1,)))
    array._at = 0
    read = dict.fromkeys(("_tape", "_at", "_form", "_value"), array)
    tape = Tape.__new__(Tape)  # no other thread finds it
    for name in ("node", "slots", "places", "is_closed"):
        setattr(tape, name, None)
        read[name] = tape
    read |= dict.fromkeys(("count", "depth", "mark"), TapeState(None, None, ()))
    read |= {"limits": array._form, "root": Trie()}
    lists = (EAGER_BLOCKS, WRITTEN, TRIE, TAPES, forget_some, Owner())
    try:
        maker = OperatorMaker(OperatorForm(Recorded.kind, Tape, read, *lists), default_cache())
    except LookupError as reason:
        debug.show(2, f"operators of lazy arrays are Python's: {reason}", "")
        return
    for each in RECORDERS:
        each.builtin = maker.make(each.function, each.operands, each.is_swapped, each.run)
        for name in each.names:
            setattr(Recorded.kind, name, as_method(each.builtin))
        for use in each.users:
            use(each.builtin)


def find_names() -> None:
    """Note which attributes of arrays are recorders."""
    by_run: dict[Any, Recorder] = {each.run: each for each in RECORDERS}
    for name, value in vars(Recorded.kind).items():
        if callable(value) and value in by_run:
            by_run[value].names.append(name)
