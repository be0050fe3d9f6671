"""The texts of kernels and reductions, their syntax trees, and the start of their lowering."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.base.source import SourceFile
from fusec.frontends.c import syntax as s
from fusec.frontends.c.context import TranslationUnit
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.params import ParamDecl
from fusec.frontends.c.statements import StatementLowering


@dataclass(frozen=True)
class ParsedTexts:
    """What the texts of kernels and reductions have in common; nothing here depends on types."""

    name: str
    inputs: tuple[ParamDecl, ...]
    outputs: tuple[ParamDecl, ...]
    source: SourceFile  # the text that the lines of the program refer to
    declarations: tuple[s.External, ...]  # the preamble
    single: bool  # float literals without suffix are float32
    addressed: frozenset[str]  # variables whose address may be kept

    @property
    def params(self) -> tuple[ParamDecl, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    def unit(self, types: Mapping[str, DType]) -> TranslationUnit:
        """What all functions share for given types of the parameters, with the declarations of the preamble."""
        placeholders = {param.type_name: types[param.name] for param in self.params if param.dtype is None}
        unit = TranslationUnit(self.source, self.single, dict(placeholders), addressed=self.addressed)
        StatementLowering(FunctionFrame(unit, set())).declarations.preamble(self.declarations)
        unit.names |= {*(param.name for param in self.params), *unit.globals, self.name}
        return unit

    def frame(self, unit: TranslationUnit, *taken: str) -> FunctionFrame:
        """A frame for one of the texts. taken: further names that locals must not have."""
        names = {*(param.name for param in self.params), *unit.functions, *unit.globals, *taken}
        frame = FunctionFrame(unit, names)
        StatementLowering(frame)
        return frame
