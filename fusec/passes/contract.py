"""Contract: turn a product and the sum that uses it into one fma, which rounds once.

Note [Contraction]: what C calls FP_CONTRACT ON, decided here once for all targets, so that a contracted program has the
same bits on each of them: code generators form no fma of their own. A product goes into a sum, a difference or a
negated one only within an expression; a local variable ends it, as the user's statements do. A product of which
anything else is wanted, or that two sums would not both take in, stays a product: contraction never computes twice.
Where both operands are products the left one is taken in, unless it must stay.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusec.base.dtypes import COMPUTE_FLOATS
from fusec.ir.expr import Apply, Const, Expr, apply
from fusec.ir.loops import Program
from fusec.ir.walk import Body, expressions, map_expressions, roots_of, with_bodies
from fusec.passes.fold import fold_expression
from fusec.passes.simplify import simplify_expression

SUMS = frozenset({"add", "subtract"})


def contract(program: Program) -> Program:
    """Replace ``a*b + c``, ``c + a*b``, ``a*b - c``, ``c - a*b`` and the same of ``-(a*b)`` by fma, for real floats.

    Requires: a verified program whose functions are the user's: those of fusec.math say where they want an fma.
    Ensures: no more operations than before, changes of sign aside; the order of evaluation of everything else.
    """
    return with_bodies(program, _contract_body)


def _contract_body(body: Body) -> Body:
    taken = _taken(_users(roots_of(body)))
    if not taken:
        return body
    known: dict[Expr, Expr] = {}

    def rewrite(expr: Expr) -> Expr:
        found = known.get(expr)
        if found is None:
            term = taken.get(expr)
            found = _rebuilt(expr, [rewrite(child) for child in expr.children]) if term is None else fused(expr, term)
            known[expr] = found
        return found

    def fused(whole: Expr, term: Expr) -> Expr:
        assert isinstance(whole, Apply), "only a sum takes in a product"
        left, right = whole.args
        is_left = term is left
        product, minus = _product(term)
        assert product is not None, "what a sum takes in is a product"
        first, second = map(rewrite, product.args)
        other = rewrite(right if is_left else left)
        if whole.op == "subtract" and is_left:
            other = _negative(other)
        elif whole.op == "subtract":
            minus = not minus
        if minus and isinstance(second, Const):
            second = _negative(second)
        elif minus:
            first = _negative(first)
        return apply("fma", first, second, other)

    return map_expressions(body, rewrite)


def _users(roots: Iterable[Expr]) -> dict[Expr, list[Expr | None]]:
    """Every expression with the different ones it is an operand of; None stands for a statement."""
    users: dict[Expr, list[Expr | None]] = {}
    roots = list(roots)
    for root in roots:
        users[root] = [None]
    for expr in expressions(roots):
        for child in dict.fromkeys(expr.children):
            users.setdefault(child, []).append(expr)
    return users


def _taken(users: dict[Expr, list[Expr | None]]) -> dict[Expr, Expr]:
    """Which operand each sum takes in; see Note [Contraction]. A product goes in where all its users are still free."""
    taken: dict[Expr, Expr] = {}
    for whole in users:
        for term in _terms(whole):
            if whole not in taken and _may_vanish(term, users):
                sums = [user for user in users[term] if user is not None]
                if not any(each in taken or each.children[0] is each.children[1] for each in sums):
                    taken.update(dict.fromkeys(sums, term))
    return taken


def _terms(expr: Expr) -> tuple[Expr, ...]:
    """The operands of a sum."""
    return expr.children if isinstance(expr, Apply) and expr.op in SUMS else ()


def _may_vanish(expr: Expr, users: dict[Expr, list[Expr | None]]) -> bool:
    """A product, or the negative of one that nothing else wants, whose users are all sums."""
    product, _ = _product(expr)
    if product is None or (product is not expr and users[product] != [expr]):
        return False
    return all(user is not None and _terms(user) for user in users[expr])


def _product(expr: Expr) -> tuple[Apply | None, bool]:
    """The product of real floats that an expression is, perhaps after a change of sign, and whether there is one."""
    match expr:
        case Apply("multiply", _, dtype) if dtype in COMPUTE_FLOATS:
            return expr, False
        case Apply("negative", (Apply("multiply", _, dtype) as product,)) if dtype in COMPUTE_FLOATS:
            return product, True
        case _:
            return None, False


def _negative(value: Expr) -> Expr:
    return simplify_expression(fold_expression(apply("negative", value)))


def _rebuilt(expr: Expr, children: list[Expr]) -> Expr:
    return expr if tuple(children) == expr.children else expr.rebuild(tuple(children))
