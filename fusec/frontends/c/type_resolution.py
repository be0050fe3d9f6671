"""Types as they are written, structs and enumerations, and constants that are known when a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BOOL, INT32, INT64, UINT64, DType, complex_type, signed_of, unsigned_of
from fusec.base.records import replace
from fusec.errors.base import FusecError
from fusec.errors.language import ArgumentCount, BadDeclaration, NotConstant, NotSupported, UnknownType
from fusec.frontends.c import literals
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import common_choice, convert
from fusec.frontends.c.c_types import NAMED, Auto, CType, PointerTo, RawOf, Void, builtin, show
from fusec.frontends.c.context import Bindings, Member, Record
from fusec.frontends.c.folding import fold
from fusec.frontends.c.frame import FunctionFrame, SubstitutionError
from fusec.frontends.c.symbols import LocalArrayOf, NamedConstant, RawArray, Variable
from fusec.ir.expr import Const, Expr, Pointer, Struct, const, type_of
from fusec.ir.loops import Stmt

THIS = "this"


class TypeResolver:
    """Finds the types that are written, and defines structs and enumerations."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame = frame

    # --- types ---

    def resolve(self, node: s.Qualified) -> CType:
        """The written type. Raises UnknownType or NotSupported."""
        base = self._base(node.base)
        if not node.marks or (node.marks == "&" and isinstance(base, RawOf)):
            return base
        if node.marks not in ("*", "&"):
            raise NotSupported("a pointer to a pointer is", "use one array and compute the index").at(node.span)
        if isinstance(base, (PointerTo, Void, Auto, RawOf)):
            if node.marks == "&" and isinstance(base, Auto):
                return base
            raise NotSupported(f"a pointer or reference to {show(base)} is", "name the element's type").at(node.span)
        return PointerTo(base, node.const, node.marks == "&")

    def scalar(self, node: s.Qualified) -> DType:
        """The written type, which must be a scalar. Raises UnknownType."""
        found = self.resolve(node)
        if not isinstance(found, DType):
            raise UnknownType(show(found), "a scalar type is needed here").at(node.span)
        return found

    def _base(self, node: s.TypeName | s.Decltype) -> CType:
        if isinstance(node, s.Decltype):
            return self._decltype(node)
        if node.args or node.member:
            return self._applied(node)
        for scope in reversed(self.frame.types):
            if node.name in scope:
                return scope[node.name]
        if node.name in self.frame.unit.refused_structs:
            raise self.frame.unit.refused_structs[node.name]
        found = self.frame.unit.types.get(node.name) or NAMED.get(node.name) or builtin(node.name)
        if found is None:
            known = did_you_mean(node.name, {*self.frame.unit.types, *NAMED})
            raise UnknownType(node.name, known or "C's types, NumPy's names and the placeholders are known").at(
                node.span
            )
        return found

    def _decltype(self, node: s.Decltype) -> CType:
        if node.member:
            if node.member not in ("index_t", "value_type"):
                raise UnknownType(node.member, "index_t and value_type are known").at(node.span)
            if isinstance(node.value, s.Name):
                found = self.frame.lookup(node.value)
                if isinstance(found, RawArray):
                    return INT64 if node.member == "index_t" else found.dtype
            return INT64
        with self.frame.block():  # unevaluated
            return self.type_of_node(node.value)

    def type_of_node(self, node: s.Expression) -> CType:
        """The type of an expression that is not evaluated."""
        if isinstance(node, s.Name):
            found = self.frame.lookup(node)
            if isinstance(found, Variable):
                return found.type
            if isinstance(found, LocalArrayOf):
                return PointerTo(found.element, bool(found.const))
        given = type_of(self.frame.value(node))
        assert not isinstance(given, Pointer), "value() gives scalars and structs"
        return given

    def _applied(self, node: s.TypeName) -> CType:
        """A type with arguments: complex<T>, conditional<...>::type and other traits."""
        args = [self.type_argument(arg) for arg in node.args]
        if node.name in self.frame.unit.templates and not node.member:
            return self.instantiated(node, args)
        name = node.name.removesuffix("_t")
        types = [arg for arg in args if isinstance(arg, DType)]
        match name, args:
            case "complex", [DType() as part] if part.is_float and part.bits >= 32:
                return complex_type(part)
            case "conditional", [Const() as test, a, b] if not isinstance(a, Const) and not isinstance(b, Const):
                return a if test.bits else b
            case "enable_if", [Const() as test, *rest]:
                if not test.bits:
                    raise SubstitutionError
                return rest[0] if rest and not isinstance(rest[0], Const) else Void()
            case "make_unsigned" | "make_signed", [DType() as given] if given.is_integer:
                return unsigned_of(given.bits) if name == "make_unsigned" else signed_of(given.bits)
            case "remove_const" | "remove_cv" | "remove_reference" | "decay", [DType() as given]:
                return given
            case "common_type", [DType(), DType()]:
                return common_choice(*types)
        shown = ", ".join(str(arg.value) if isinstance(arg, Const) else show(arg) for arg in args)
        raise UnknownType(f"{node.name}<{shown}>", "complex<float>, complex<double> and conditional<...> are known").at(
            node.span
        )

    def type_argument(self, node: s.TypeArg) -> CType | Const:
        """An argument of a template: a type, or a constant."""
        if isinstance(node, s.Qualified):
            return self.resolve(node)
        return self.constant(node, "a template argument")

    # --- constants ---

    def constant(self, node: s.Expression, what: str) -> Const:
        """The value of an integer expression that must be known now. Raises NotConstant."""
        with self.frame.block() as named:
            value = self.frame.value(node)
        found = self.folded(value, named)
        if found is None or not (found.type.is_integer or found.type == BOOL):
            raise NotConstant(what).at(node.span)
        return found

    def folded(self, value: Expr, named: Sequence[Stmt] = ()) -> Const | None:
        """The constant that a value is, None if it is none. named: statements that declare locals of it."""
        return fold(value, self.frame.known, list(named))

    def sizeof(self, node: s.Sizeof) -> Const:
        """``sizeof``, a size_t."""
        if isinstance(node.operand, s.Qualified):
            found = self.resolve(node.operand)
        elif isinstance(node.operand, s.Name) and isinstance(array := self.frame.find(node.operand.name), LocalArrayOf):
            size = array.element.nbytes
            for length in array.lengths:
                size *= length
            return const(size, UINT64)
        else:
            with self.frame.block():
                found = self.type_of_node(node.operand)
        if not isinstance(found, DType):
            raise NotSupported(f"sizeof of {show(found)} is", "only scalars have a size").at(node.span)
        return const(found.nbytes, UINT64)

    def trait(self, node: s.Trait) -> Const:
        """A fact about types. Raises UnknownType if there is none with that name."""
        args = [self.type_argument(arg) for arg in node.args]
        match node.name, args:
            case "is_same", [a, b]:
                return const(a == b, BOOL)
            case "numeric_limits", [DType() as dtype]:
                found = literals.limit(dtype, node.member)
                if found is not None:
                    return found
            case _, [DType() as dtype] if node.name in _PREDICATES:
                return const(_PREDICATES[node.name](dtype), BOOL)
        raise UnknownType(f"{node.name}<...>::{node.member}", "is this trait spelled right?").at(node.span)

    # --- structs ---

    def declare_struct(self, item: s.StructDef) -> None:
        """A struct of a preamble; one that the language does not have is refused where it is used."""
        if item.templates is not None:
            self.frame.unit.templates[item.name] = item
            return
        try:
            self.frame.unit.types[item.name] = self.define(item, {}, item.name)
        except FusecError as problem:
            self.frame.unit.refused_structs[item.name] = problem

    def define(self, item: s.StructDef, bindings: Bindings, name: str) -> Struct:
        """The struct for template arguments. Raises NotSupported or BadDeclaration."""
        inside = TypeResolver(self.frame.within(bindings))
        inside.frame.types[0].update({} if bindings else self.frame.types[-1])
        members: dict[str, Member] = {}
        values: dict[str, Const] = {}
        for each in item.members:
            match each:
                case s.Alias(name=alias, type=kind):
                    inside.frame.types[0][alias] = inside.resolve(kind)
                case s.StructDef():
                    inside.inner_struct(each, bindings)
                case s.EnumDef():
                    values.update(inside.enumeration(each))
                case s.Fields():
                    if each.defines is not None:
                        inside.inner_struct(each.defines, bindings)
                    if "static" in each.type.qualifiers:
                        values.update(inside.static_values(each))
                    else:
                        inside.fields(each, members, item.name)
        if not members:
            raise BadDeclaration(f"struct '{item.name}' has no fields", "add a field").at(item.span)
        struct = self._struct_of(name, members)
        record = self.frame.unit.records[struct] = Record(struct, members, inside.frame.types[0], values)
        record.types[item.name] = struct
        self._functions(item, record)
        self.frame.unit.globals.update({f"{item.name}::{each}": NamedConstant(value) for each, value in values.items()})
        return struct

    def _struct_of(self, name: str, members: dict[str, Member]) -> Struct:
        """The struct of the IR, whose fields are scalars: those of a field that is a struct stand in its place."""
        taken = {struct.name for struct in self.frame.unit.records}
        unique, count = name, 0
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        fields: dict[str, DType] = {name: each.type for name, each in members.items() if isinstance(each.type, DType)}
        order: list[str] = []
        for name, member in members.items():
            parts: list[str] = []
            for inner, dtype in member.type.fields if isinstance(member.type, Struct) else ():
                part = f"{name}_{inner}"
                while part in fields:
                    part += "_"
                fields[part] = dtype
                parts.append(part)
            members[name] = replace(member, parts=tuple(parts) or (name,))
            order += members[name].parts
        return Struct(unique, tuple((part, fields[part]) for part in order))

    def inner_struct(self, item: s.StructDef, bindings: Bindings) -> None:
        """A struct defined in another one, known outside by its own name as well."""
        found = self.define(item, bindings, item.name)
        self.frame.types[0][item.name] = found
        if not bindings:
            self.frame.unit.types.setdefault(item.name, found)

    def fields(self, node: s.Fields, members: dict[str, Member], struct: str) -> None:
        """Add the fields of one declaration."""
        for each in node.declarators:
            kind = None if each.marks or each.arrays else self.resolve(node.type)
            if not isinstance(kind, (DType, Struct)):
                cure = "fields are scalars and structs; keep arrays in local variables beside the struct"
                raise NotSupported(f"the array or pointer field '{each.name}' is", cure).at(each.span)
            if each.name in members:
                raise BadDeclaration(f"struct '{struct}' has two fields of one name", "rename one").at(each.span)
            members[each.name] = Member(each.name, kind, (), each.value)

    def static_values(self, node: s.Fields) -> dict[str, Const]:
        """Constants of a struct. Raises BadDeclaration for variables."""
        found: dict[str, Const] = {}
        for each in node.declarators:
            if not node.type.const or each.value is None or isinstance(each.value, s.Braced):
                shown = f"the static member '{each.name}' is not a constant"
                raise BadDeclaration(shown, "write static constexpr T x = value;").at(each.span)
            value = convert(self.frame.value(each.value), self.scalar(node.type), each.span)
            known = self.folded(value)
            if known is None:
                raise BadDeclaration(f"constant '{each.name}' needs a plain value", "write a number").at(each.span)
            found[each.name] = known
            self.frame.symbols[0][each.name] = NamedConstant(known)
        return found

    def _functions(self, item: s.StructDef, record: Record) -> None:
        """Note constructors and methods; a method has the struct itself as its first parameter."""
        own = s.TypeName(item.span, item.name)
        for each in item.members:
            if not isinstance(each, s.FunctionDef) or each.body is None:
                continue
            if each.initials is not None:
                made = replace(each, name=item.name, result=s.Qualified(each.span, own, frozenset()))
                record.constructors.append(made)
            elif "static" in each.result.qualifiers:
                made = replace(each)
                self.frame.unit.functions.setdefault(f"{item.name}::{each.name}", []).append(made)
                record.statics.setdefault(each.name, []).append(made)
            else:
                kind = s.Qualified(
                    each.span, own, frozenset({"const"} if each.const else ()), "" if each.const else "&"
                )
                params = (s.FunctionParam(each.span, THIS, kind), *without_void(each.params))
                made = replace(each, name=f"{item.name}_{each.name}", params=params)
                record.methods.setdefault(each.name, []).append(made)
            self.frame.unit.owners[id(made)] = record

    # --- templates ---

    def instantiated(self, node: s.TypeName, args: list[CType | Const]) -> Struct:
        """The struct that a template is for arguments. Raises ArgumentCount."""
        item = self.frame.unit.templates[node.name]
        params = item.templates or ()
        bindings: Bindings = dict(zip((param.name for param in params), args, strict=False))
        if len(args) > len(params) or any(param.default is None for param in params[len(args) :]):
            raise ArgumentCount(
                f"struct {node.name}<...>", str(len(params)), len(args), "name every argument that has no default"
            ).at(node.span)
        for param in params[len(args) :]:
            assert param.default is not None, "checked above"
            bindings[param.name] = TypeResolver(self.frame.within(bindings)).type_argument(param.default)
        key = (node.name, tuple(bindings.values()))
        if key not in self.frame.unit.structs:
            shown = "_".join(str(arg.value) if isinstance(arg, Const) else show(arg) for arg in bindings.values())
            name = f"{node.name}_{shown}".replace(" ", "_").replace("-", "m")
            found = TypeResolver(self.frame.within({})).define(item, bindings, name)
            self.frame.unit.structs[key] = found
            record = self.frame.unit.records[found]
            record.template, record.args = node.name, tuple(bindings.values())
            record.bindings.update(bindings)
        return self.frame.unit.structs[key]

    # --- enumerations ---

    def enumeration(self, node: s.EnumDef) -> dict[str, Const]:
        """Bind an enumeration and its values in the innermost scope; the values by name, if they are not scoped."""
        kind = INT32 if node.base is None else self.scalar(node.base)
        if not kind.is_integer:
            raise BadDeclaration(f"an enumeration of {show(kind)}", "name an integer type").at(node.span)
        found: dict[str, Const] = {}
        following = 0
        for name, span, value in node.values:
            if value is not None:
                following = int(self.constant(value, f"the value of '{name}'").value)
            found[name] = const(following, kind)
            following = int(found[name].value) + 1
            if node.name:
                self.frame.unit.globals[f"{node.name}::{name}"] = NamedConstant(found[name])
            if not node.scoped:
                self.frame.bind(name, NamedConstant(found[name]), span)
        if node.name:
            self.frame.types[-1][node.name] = kind
        return {} if node.scoped else found


_PREDICATES: dict[str, Callable[[DType], bool]] = {
    "is_floating_point": lambda dtype: dtype.is_float,
    "is_integral": lambda dtype: dtype.is_integer or dtype == BOOL,
    "is_signed": lambda dtype: dtype.kind in ("signed", "float"),
    "is_unsigned": lambda dtype: dtype.kind in ("unsigned", "bool"),
    "is_arithmetic": lambda dtype: not dtype.is_complex,
    "is_complex": lambda dtype: dtype.is_complex,
}


def without_void(params: tuple[s.FunctionParam, ...]) -> tuple[s.FunctionParam, ...]:
    """The parameters; ``(void)`` means none."""
    match params:
        case (s.FunctionParam(name="", type=s.Qualified(base=s.TypeName(name="void"), marks="")),):
            return ()
    return params
