"""Structs and enumerations: their fields in the IR, their inner declarations, and instances of templates."""

from __future__ import annotations

from typing import Self

from fusec.base.dtypes import INT32, DType
from fusec.base.records import replace
from fusec.errors.base import FusecError
from fusec.errors.language import ArgumentCount, BadDeclaration, NotSupported
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import CType, show
from fusec.frontends.c.context import Member, Record
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.symbols import NamedConstant
from fusec.ir.expr import Const, Struct, const

Bindings = dict[str, CType | Const]
THIS = "this"


class Structs(FunctionFrame):
    """Defines structs and enumerations."""

    def within(self, bindings: Bindings, owner: Record | None = None) -> Self:
        """A frame that sees the preamble, template parameters and what a struct declares; nothing of this function."""
        frame = type(self)(self.unit, set(self.unit.functions))
        if owner is not None:
            frame.types[0].update(owner.types)
            frame.symbols[0].update({name: NamedConstant(value) for name, value in owner.values.items()})
        for name, value in bindings.items():
            if isinstance(value, Const):
                frame.symbols[0][name] = NamedConstant(value)
            else:
                frame.types[0][name] = value
        return frame

    def record(self, struct: Struct) -> Record:
        """The facts about a struct beside its fields; CUDA's vector types have no others."""
        found = self.unit.records.get(struct)
        if found is None:
            members = {name: Member(name, dtype, (name,)) for name, dtype in struct.fields}
            found = self.unit.records[struct] = Record(struct, members)
        return found

    # --- structs ---

    def declare_struct(self, item: s.StructDef) -> None:
        """A struct of a preamble; one that the language does not have is refused where it is used."""
        if item.templates is not None:
            self.unit.templates[item.name] = item
            return
        try:
            self.unit.types[item.name] = self.define(item, {}, item.name)
        except FusecError as problem:
            self.unit.refused_structs[item.name] = problem

    def define(self, item: s.StructDef, bindings: Bindings, name: str) -> Struct:
        """The struct for template arguments. Raises NotSupported or BadDeclaration."""
        inside = self.within(bindings)
        inside.types[0].update({} if bindings else self.types[-1])
        members: dict[str, Member] = {}
        values: dict[str, Const] = {}
        for each in item.members:
            match each:
                case s.Alias(name=alias, type=kind):
                    inside.types[0][alias] = inside.resolve(kind)
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
        record = self.unit.records[struct] = Record(struct, members, inside.types[0], values)
        record.types[item.name] = struct
        self._functions(item, record)
        self.unit.globals.update({f"{item.name}::{each}": NamedConstant(value) for each, value in values.items()})
        return struct

    def _struct_of(self, name: str, members: dict[str, Member]) -> Struct:
        """The struct of the IR, whose fields are scalars: those of a field that is a struct stand in its place."""
        taken = {struct.name for struct in self.unit.records}
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
        self.types[0][item.name] = found
        if not bindings:
            self.unit.types.setdefault(item.name, found)

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
            value = self.converted(self.value(each.value), self.scalar(node.type), each.span)
            known = self.folded(value)
            if known is None:
                raise BadDeclaration(f"constant '{each.name}' needs a plain value", "write a number").at(each.span)
            found[each.name] = known
            self.symbols[0][each.name] = NamedConstant(known)
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
                self.unit.functions.setdefault(f"{item.name}::{each.name}", []).append(made)
                record.statics.setdefault(each.name, []).append(made)
            else:
                kind = s.Qualified(
                    each.span, own, frozenset({"const"} if each.const else ()), "" if each.const else "&"
                )
                params = (s.FunctionParam(each.span, THIS, kind), *without_void(each.params))
                made = replace(each, name=f"{item.name}_{each.name}", params=params)
                record.methods.setdefault(each.name, []).append(made)
            self.unit.owners[id(made)] = record

    # --- templates ---

    def instantiated(self, node: s.TypeName, args: list[CType | Const]) -> Struct:
        """The struct that a template is for arguments. Raises ArgumentCount."""
        item = self.unit.templates[node.name]
        params = item.templates or ()
        bindings: Bindings = dict(zip((param.name for param in params), args, strict=False))
        if len(args) > len(params) or any(param.default is None for param in params[len(args) :]):
            raise ArgumentCount(
                f"struct {node.name}<...>", str(len(params)), len(args), "name every argument that has no default"
            ).at(node.span)
        for param in params[len(args) :]:
            assert param.default is not None, "checked above"
            bindings[param.name] = self.within(bindings).type_argument(param.default)
        key = (node.name, tuple(bindings.values()))
        if key not in self.unit.structs:
            shown = "_".join(str(arg.value) if isinstance(arg, Const) else show(arg) for arg in bindings.values())
            name = f"{node.name}_{shown}".replace(" ", "_").replace("-", "m")
            found = self.within({}).define(item, bindings, name)
            self.unit.structs[key] = found
            record = self.unit.records[found]
            record.template, record.args = node.name, tuple(bindings.values())
            record.bindings.update(bindings)
        return self.unit.structs[key]

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
                self.unit.globals[f"{node.name}::{name}"] = NamedConstant(found[name])
            if not node.scoped:
                self.bind(name, NamedConstant(found[name]), span)
        if node.name:
            self.types[-1][node.name] = kind
        return {} if node.scoped else found


def without_void(params: tuple[s.FunctionParam, ...]) -> tuple[s.FunctionParam, ...]:
    """The parameters; ``(void)`` means none."""
    match params:
        case (s.FunctionParam(name="", type=s.Qualified(base=s.TypeName(name="void"), marks="")),):
            return ()
    return params
