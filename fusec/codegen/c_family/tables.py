"""Constant tables of elementary functions as arrays at file scope, named after their contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from fusec.codegen.c_family import facts
from fusec.codegen.c_family.literals import literal
from fusec.codegen.c_family.spelling import HELPER_PREFIX, Spelling
from fusec.ir.expr import Lookup
from fusec.ir.walk import Body


def table_name(value: Lookup) -> str:
    """The name of the array: equal tables have equal names in every file."""
    bits = b"".join(entry.bits.to_bytes(value.type.nbytes, "little") for entry in value.values)
    return f"{HELPER_PREFIX}table_{hashlib.sha256(bits).hexdigest()[:12]}"


def tables(bodies: Iterable[Body], spelling: Spelling) -> dict[str, str]:
    """The texts of the arrays that statements look into, by name."""
    texts: dict[str, str] = {}
    for body in bodies:
        for node in facts.nodes(body):
            if isinstance(node, Lookup) and table_name(node) not in texts:
                entries = ", ".join(literal(entry, spelling, loose=True).text for entry in node.values)
                head = f"{spelling.table} {spelling.type(node.type)} {table_name(node)}[{len(node.values)}]"
                texts[table_name(node)] = f"{head} = {{{entries}}};"
    return texts
