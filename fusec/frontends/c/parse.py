"""Text to syntax tree: scanning, macros, classification and the LALR parser, with errors in the user's words."""

from __future__ import annotations

from typing import Any

from fusec.base.source import SourceFile
from fusec.frontends.c import constants
from fusec.frontends.c import syntax as s
from fusec.frontends.c.build import TreeBuilder
from fusec.frontends.c.classify import TYPES, Classifier
from fusec.frontends.c.params import ParamDecl
from fusec.frontends.c.preprocess import Preprocessor
from fusec.frontends.c.syntax_errors import Misparse
from fusec.frontends.c.texts import KernelTexts, ReductionTexts
from fusec.frontends.grammar_tables import Token, UnexpectedSymbolError


class Reader:
    """Reads the texts of one kernel in turn; macros, type names and templates carry over from one to the next."""

    def __init__(self, texts: KernelTexts | ReductionTexts, params: tuple[ParamDecl, ...], *types: str) -> None:
        self.kernel = texts.name
        self.tables = TreeBuilder.tables()
        self.preprocessor = Preprocessor(self._condition)
        self.values = frozenset(param.name for param in params)
        placeholders = {param.type_name for param in params if param.dtype is None}
        self.classifier = Classifier(self.tables.words, {*TYPES, *placeholders, *types} - self.values)
        self.addressed: set[str] = set()  # variables whose address may be kept
        self.single = self.preprocessor.define_options(texts.options)  # float literals without suffix are float32

    def file(self, part: str, text: str) -> SourceFile:
        """One of the texts, by its name in messages."""
        return SourceFile(f"kernel '{self.kernel}', {part}", text)

    def preamble(self, text: str) -> tuple[s.External, ...]:
        """The functions, structs, aliases and constants of a preamble."""
        if not text.strip():
            return ()
        file = self.file("preamble", text)
        tokens = self.classifier.classify(self.preprocessor.read(file), file, preamble=True)
        return self._parse(tokens, file, "preamble")  # type: ignore[no-any-return]

    def body(self, file: SourceFile) -> s.Body:
        """The statements of a text; the last semicolon may be missing."""
        tokens = self.classifier.classify(self.preprocessor.read(file), file)
        if not tokens:
            return ()
        end = len(file.text.rstrip())
        tokens.append(Token("SEMICOLON", "", end, end))
        return self._parse(tokens, file, "body")  # type: ignore[no-any-return]

    def _condition(self, tokens: list[Token], file: SourceFile) -> int:
        tree: s.Expression = self._parse(self.classifier.classify(tokens, file), file, "condition")
        return constants.evaluate(tree)

    def _parse(self, tokens: list[Token], file: SourceFile, start: str) -> Any:
        builder = TreeBuilder(file)
        try:
            found = builder.parse(tokens, start)
            self.addressed |= {name for name, count in builder.addressed.items() if count > 0}
            return found
        except UnexpectedSymbolError as error:
            values = self.values | {"i", "n"}
            wrong = Misparse(file, tokens, values, self.classifier.types, self.tables.words)
            raise wrong.explain(error) from None
