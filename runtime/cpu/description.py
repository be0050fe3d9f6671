"""The native entry's description of a kernel: `Header.WORDS` words of 64 bits, then `Argument.WORDS` per parameter."""

from __future__ import annotations

from enum import IntEnum

MOST_ARGUMENTS = 96
MOST_SLOTS = 255
SLOTS = MOST_SLOTS + 1
NO_SLOT = MOST_SLOTS  # a place to write what the kernel does not ask for


class Header(IntEnum):
    """Words at the start of a description."""

    TABLE = 0
    FALLBACK = 1
    KERNEL = 2
    LIMIT = 3  # elements; more go to the fallback
    ALLOCATE_LIMIT = 4  # elements; more go to the fallback if outputs are to be allocated
    SMALL_LIMIT = 15  # elements; larger outputs of any shape come from the allocators of the parameters
    ALONE_BELOW = 5  # elements; more run without the interpreter lock
    POOL_RUN = 6  # 0 if there is no pool
    POOL_STATE = 7
    GRAIN = 8
    INPUTS = 9
    OUTPUTS = 10
    SIZE_SLOT = 11
    EXTENT_SLOT = 12
    NDIM = 13  # axes that arrays must have; 0 for any number
    RETURNS = 14  # a Returns
    TEMPLATE = 16  # slots filled beforehand, for calls whose shapes and strides are known; 0 if they are not
    TEMPLATE_WORDS = 17
    SPACE_SIZE = 18  # elements of such a call
    GIVEN = 19  # arguments of a call that gives the outputs; -1 if none may
    KEYWORD = 20  # 1 if such a call may name the one output: out=
    WORDS = 21


class Argument(IntEnum):
    """Words of one parameter."""

    KIND = 0  # a Kind
    DTYPE = 1
    MASK = 2  # flags of the array that matter; for a number, the Accepts that may be given
    FLAGS = 3  # and what they must be
    SLOT = 4
    ITEMSIZE = 5
    RAW_SIZE_SLOT = 6
    RAW_EXTENT_SLOT = 7
    RAW_STRIDE_SLOT = 8
    FORM = 9  # a Form
    LEAST = 10  # of integers; or the bits that a scalar must have, if MOST is 1
    MOST = 11
    ALLOCATOR = (
        12  # of an output: called with the first array, gives a new one; 0: a PLACED one in C order is made here
    )
    WALK = 13  # of a PLACED array: the address of its number of axes, extents and strides
    OFFSET = 14  # of such an array: bytes from its data to what the slot gets, and to the bounds of its memory
    LOW = 15
    HIGH = 16
    CHANGES = 17  # 1 for an array that the kernel writes
    PLACE = 18  # arrays of one number that begin at one address have the same elements, which the kernel allows
    SCALAR = 19  # of a number: the type of objects of which the bits are copied, 0 for none
    SECOND_SLOT = 20  # of a number: where the second half of one of 16 bytes goes
    WORDS = 21


class ParameterKind(IntEnum):
    """What a parameter accepts."""

    ARRAY = 0
    RAW = 1
    NUMBER = 2
    PLACED = 3  # an array of known shape and strides


class NumberForm(IntEnum):
    """How a number is stored in its slot."""

    FLOAT32 = 0
    FLOAT64 = 1
    INTEGER = 2


class Accepts(IntEnum):
    """Bits: the Python types that convert to a number, and whether NumPy's scalars convert too."""

    FLOAT = 1
    INT = 2
    BOOL = 4
    NUMPY = 8


class Returns(IntEnum):
    """The result of a call."""

    OUTPUTS = 0  # the output, or a tuple of several
    TUPLE = 1
    NOTHING = 2


class AddressTable(IntEnum):
    """Words of the table of addresses."""

    NDARRAY = 0
    FLOAT = 1
    INT = 2
    BOOL = 3
    TRUE = 4
    NONE = 5
    VECTORCALL = 6
    NEW_ARRAY = 7
    SAVE_THREAD = 8
    RESTORE_THREAD = 9
    NEW_TUPLE = 10
    SET_ITEM = 11
    INCREF = 12
    DECREF = 13
    AS_LONG_LONG = 14
    AS_DOUBLE = 15
    OUT = 16  # the name of the keyword
    ITEMS = 17  # bytes from a tuple to its items
    SCALARS = 18  # the first of NumPy's types of scalars, in the order of `SCALARS`; all 0 if their layout is unknown
    WORDS = 30


SCALARS = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)
"""The dtypes of scalars that convert as Python's numbers do."""


# Offsets in CPython's and NumPy's objects, on builds with a 16-byte object header; fastcall.py verifies them.
TYPE = 8
DATA, NDIM, EXTENTS, STRIDES, DTYPE, FLAGS = 16, 24, 32, 40, 56, 64
VALUE = 16  # of one of NumPy's scalars
DESCRIPTION = 32  # of the data in a bytes object
COUNT = 16  # of the items of a tuple


def fill_in(text: str) -> str:
    """A text with every ``{Header.KERNEL}``, ``{DATA}`` and so on replaced by its number."""
    names = {name: number for name, number in globals().items() if isinstance(number, int)}
    for words in (Header, Argument, ParameterKind, NumberForm, Accepts, Returns, AddressTable):
        names |= {f"{words.__name__}.{word.name}": int(word) for word in words}
    for name, number in names.items():
        text = text.replace("{" + name + "}", str(number))
    return text
