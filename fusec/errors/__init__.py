"""The error catalogue: one frozen dataclass for every user error, with a stable code, a message, a label and a hint.

Modules: base (the machinery), language and python (what kernels are written in, and the files that hold it), arguments
(calls), reductions (and scans), checks (and blocks of threads), fusing (and expressions), targets (code generation and
devices), interpreter; examples and alternatives (texts that messages and ``fusec explain`` show).
"""

from fusec.errors.base import *  # noqa: F403
