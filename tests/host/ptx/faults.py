"""What can go wrong while PTX runs: each fault names the instruction, its line, and a thread."""


class PtxFault(Exception):
    """A mistake of the program that runs; ``at`` adds the place once it is known."""

    place = ""

    def at(self, place: str) -> "PtxFault":
        """The fault with the place of the instruction; the innermost place stays."""
        self.place = self.place or place
        return self

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.place}" if self.place else super().__str__()


class Unsupported(PtxFault):
    """Text that this interpreter does not know, or refuses in strict code."""


class OutOfBounds(PtxFault):
    """An access outside every buffer."""


class Misaligned(PtxFault):
    """An address that is no multiple of the width of the access."""


class Uninitialised(PtxFault):
    """A read of a register or of shared memory that nobody has written."""


class Undefined(PtxFault):
    """An operation whose result PTX leaves open, such as a division by zero."""


class SharedRace(PtxFault):
    """Two threads touch one byte of shared memory, one of them writes, and no barrier stands between."""


class BarrierDivergence(PtxFault):
    """Some threads of a block wait at a barrier that others never reach."""


class WarpDivergence(PtxFault):
    """A warp-wide instruction whose member mask names lanes that do not take part."""


class StepLimit(PtxFault):
    """More instructions than allowed: the program does not seem to end."""
