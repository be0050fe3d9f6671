"""The error catalogue: one frozen dataclass for every user error, with a stable code, a message, a label and a hint.

Modules: base (the machinery), language (kernel text), arguments (calls), targets (code generation and devices).
"""

from fusec.errors.base import *  # noqa: F403
