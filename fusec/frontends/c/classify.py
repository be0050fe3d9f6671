"""Words to terminals: which names are types and templates at each place, so that one token of lookahead suffices."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import BY_NAME
from fusec.base.records import dataclass, field
from fusec.base.source import SourceFile
from fusec.errors.language import BadDeclaration, NotSupported, TooDeep, Unbalanced, UnknownName
from fusec.frontends.c.c_types import NAMED, VECTORS
from fusec.frontends.grammar_tables import Token

MAX_NESTING = 64
NAMESPACES = frozenset(
    "std thrust cupy cuda cuda::std cupy::type_traits std::chrono thrust::detail cupy::complex".split()
)
TYPES = (NAMED.keys() | {"complex"}) - {"bool"}
# Names that C and CUDA lack: where a preamble has a function of such a name, the name is the function's.
YIELDING = (frozenset(BY_NAME) - {"bool"}) | frozenset(
    "uint uchar ushort ulong longlong ulonglong bfloat16 index_t".split()
)
TRAIT_TYPES = frozenset(
    "conditional conditional_t enable_if enable_if_t make_unsigned make_unsigned_t make_signed make_signed_t"
    " remove_const remove_const_t remove_cv remove_cv_t remove_reference remove_reference_t decay decay_t"
    " common_type common_type_t".split()
)
TRAIT_VALUES = frozenset(
    "is_same is_floating_point is_integral is_signed is_unsigned is_arithmetic numeric_limits is_complex".split()
)
REFUSED = {
    "goto": "use a loop with break",
    "try": "kernels have no exceptions",
    "throw": "kernels have no exceptions",
    "new": "kernels have no heap; use a local array",
    "delete": "kernels have no heap; use a local array",
    "union": "use __float_as_int and its relatives to reinterpret bits",
    "namespace": "declare functions without a namespace",
    "operator": "write a function instead of an operator",
    "virtual": "write plain functions",
    "asm": "portable kernels have no assembly",
    "this": "write plain functions",
    "friend": "functions see all of a struct",
    "mutable": "omit the const of the function",
    "__asm__": "portable kernels have no assembly",
    "__global__": "the preamble holds __device__ functions; the kernel itself is the operation",
    "__shared__": "elements do not share memory; use a local array or a raw argument",
}
CLOSERS = {")": "(", "]": "[", "}": "{"}


@dataclass
class Classifier:
    """The type and template names of one kernel while its texts are parsed in turn."""

    words: Mapping[str, str]  # spelling -> terminal of the grammar
    types: set[str]  # names that are types now
    generics: set[str] = field(default_factory=set)  # function templates

    def classify(self, tokens: list[Token], file: SourceFile, preamble: bool = False) -> list[Token]:
        """The tokens with the terminals of the grammar as their types.

        Raises NotSupported, Unbalanced, TooDeep, UnknownName (for a foreign namespace) or BadDeclaration (for a
        function with the name of a type).
        """
        return _Pass(self, tokens, file, preamble).run()


class _Pass:
    """One text: where we are, the template parameters in force and the names that hide types."""

    def __init__(self, owner: Classifier, tokens: list[Token], file: SourceFile, preamble: bool) -> None:
        self.owner, self.tokens, self.file, self.preamble = owner, tokens, file, preamble
        self.forced: dict[int, str] = {}  # positions of names whose kind is known from what is before them
        self.templates: list[tuple[int, frozenset[str]]] = []  # (end, names) of template heads in force
        self.brackets: list[Token] = []
        self.structs: dict[int, str] = {}  # positions of the brackets that open a struct -> its name
        self.inside: list[str | None] = [None]  # for each brace around, the name of the struct that it opens
        self.hidden: list[set[str]] = [set()]

    def run(self) -> list[Token]:
        out: list[Token] = []
        words = self.owner.words
        skip = -1
        for at, token in enumerate(self.tokens):
            if at < skip:
                continue
            while self.templates and at > self.templates[-1][0]:
                self.templates.pop()
            if token.type == "PUNCTUATION":
                self._bracket(at, token)
                out.append(self._punctuation(token))
            elif token.type != "NAME":
                out.append(token)
            elif token.text in words:
                skip = self._keyword(at, token)
                if skip <= at:
                    out.append(Token(words[token.text], token.text, token.start, token.end))
            else:
                out.append(self._name(at, token, out))
        if self.brackets:
            raise Unbalanced(self.brackets[-1].text, "is never closed").at(self.brackets[-1].span(self.file))
        return out

    def _punctuation(self, token: Token) -> Token:
        terminal = self.owner.words.get(token.text)
        if terminal is None:
            cure = "templates take a fixed number of parameters" if token.text == "..." else "remove it"
            raise NotSupported(f"'{token.text}' is", cure).at(token.span(self.file))
        return Token(terminal, token.text, token.start, token.end)

    def _bracket(self, at: int, token: Token) -> None:
        text = token.text
        if text in ("(", "[", "{"):
            self.brackets.append(token)
            if len(self.brackets) > MAX_NESTING:
                raise TooDeep(MAX_NESTING, "brackets").at(token.span(self.file))
            if text == "{":
                self.hidden.append(set())
                self.inside.append(self.structs.get(at))
        elif text in CLOSERS:
            if not self.brackets:
                raise Unbalanced(text, "closes nothing").at(token.span(self.file))
            opener = self.brackets.pop()
            if opener.text != CLOSERS[text]:
                raise Unbalanced(text, f"does not match '{opener.text}'").at(token.span(self.file))
            if text == "}":
                self.hidden.pop()
                self.inside.pop()

    # --- keywords that declare ---

    def _keyword(self, at: int, token: Token) -> int:
        """Note what a keyword declares; the position to go on from if its words are to be left out, else -1."""
        match token.text:
            case "typedef":
                self._typedef(at)
            case "using":
                if self._text(at + 1) == "namespace":
                    return at + 3 + (self._text(at + 3) == ";")
                self._force(at + 1)
            case "struct" | "class" if at + 1 not in self.forced:
                self._struct(at + 1)
            case "enum":
                self._force(at + 1 + (self._text(at + 1) in ("struct", "class")))
            case "template":
                if self._is_specialised_trait(at):
                    return self._end_of_declaration(at) + 1
                self._template(at)
            case "constexpr" if at and self.tokens[at - 1].text == "if":
                return at + 1
            case "extern" if self._text(at + 1).startswith('"'):
                return at + 2
        return -1

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _force(self, at: int) -> None:
        if at < len(self.tokens) and self.tokens[at].type == "NAME":
            self.owner.types.add(self.tokens[at].text)
            self.forced[at] = "TYPE"

    def _struct(self, at: int) -> None:
        """Note the name of a struct, and where it opens."""
        self._force(at)
        named = self.tokens[at].type == "NAME" if at < len(self.tokens) else False
        if self._text(at + named) == "{":
            self.structs[at + named] = self._text(at) if named else ""

    def _typedef(self, at: int) -> None:
        depth = 0
        while at < len(self.tokens) and (depth or self.tokens[at].text != ";"):
            depth += (self.tokens[at].text == "{") - (self.tokens[at].text == "}")
            at += 1
        self._force(at - 1)

    def _is_specialised_trait(self, at: int) -> bool:
        """True for ``template<> struct std::is_signed<float16> ...``, which says what is known anyway."""
        words = [self._text(at + k) for k in range(1, 5)]
        return words[:3] == ["<", ">", "struct"] and words[3].rpartition("::")[2] in TRAIT_VALUES

    def _template(self, at: int) -> None:
        """Note the parameters of a template head, and the function or struct that follows it."""
        names: set[str] = set()
        depth, at = 0, at + 1
        while at < len(self.tokens):
            depth += (self._text(at) == "<") - (self._text(at) == ">")
            if self._text(at) in ("typename", "class") and depth == 1 and self.tokens[at + 1 : at + 2]:
                names.add(self._text(at + 1))
                self.forced[at + 1] = "TYPE"
            at += 1
            if depth == 0:
                break
        self._declared_template(at)
        self.templates.append((self._end_of_declaration(at), frozenset(names)))

    def _declared_template(self, at: int) -> None:
        depth = 0
        while at < len(self.tokens) and self._text(at) not in ("{", ";"):
            depth += (self._text(at) in ("(", "<")) - (self._text(at) in (")", ">"))
            if depth == 0 and self.tokens[at].type == "NAME" and self._text(at + 1) == "(":
                if self.inside[-1] is None:
                    self._function(self.tokens[at])
                    self.owner.generics.add(self._text(at))
                    self.forced[at] = "GENERIC"
                elif self._text(at) != self.inside[-1]:  # a method; a constructor has the name of its type
                    self.forced[at] = "NAME"
                return
            at += 1

    def _end_of_declaration(self, at: int) -> int:
        depth = 0
        while at < len(self.tokens):
            text = self._text(at)
            depth += (text == "{") - (text == "}")
            if depth == 0 and (text == ";" or (text == "}" and self._text(at + 1) != ";")):
                return at
            at += 1
        return at

    # --- names ---

    def _name(self, at: int, token: Token, out: list[Token]) -> Token:
        text = token.text
        before = out[-1].type if out else ""
        if before in ("DOT", "ARROW", "__ANON_0"):
            return token
        text = self._unqualified(token)
        if at in self.forced:
            return Token(self.forced[at], text, token.start, token.end)
        if text == "this" and any(name is not None for name in self.inside):
            return token
        if text in REFUSED:
            raise NotSupported(f"'{text}' is", REFUSED[text]).at(token.span(self.file))
        return Token(self._kind(at, text, out), text, token.start, token.end)

    def _unqualified(self, token: Token) -> str:
        if "::" not in token.text:
            return token.text
        space, _, text = token.text.rpartition("::")
        if space.rpartition("::")[2] in self.owner.types:  # an enumerator or static member, or a type inside of one
            return text if text in self.owner.types else f"{space.rpartition('::')[2]}::{text}"
        if space not in NAMESPACES:
            raise UnknownName(token.text, f"known namespaces: {', '.join(sorted(NAMESPACES))}").at(
                token.span(self.file)
            )
        return text

    def _kind(self, at: int, text: str, out: list[Token]) -> str:
        before = out[-1].type if out else ""
        if text in TRAIT_TYPES and self._text(at + 1) == "<":
            return "TRAIT_TYPE"
        if text in TRAIT_VALUES and self._text(at + 1) == "<":
            return "TRAIT_VALUE"
        if any(text in names for _, names in self.templates):
            return "TYPE"
        if text in self.owner.types and not any(text in names for names in self.hidden):
            if self._is_function(at, [each.type for each in out[-2:]]):
                self._function(self.tokens[at])
                return "NAME"
            further = text in VECTORS and before == "COMMA" and self._text(at + 1) in ("=", ",", ";", "[")
            if further or before in ("TYPE", "CTYPE", "AUTO"):  # a variable named like a type hides it
                self.hidden[-1].add(text)
                return "NAME"
            return "TYPE"
        if text in self.owner.generics or (self._text(at + 1) == "<" and self._is_instance(at + 2)):
            return "GENERIC"
        return "NAME"

    def _is_function(self, at: int, before: list[str]) -> bool:
        """True for the name of a function that a preamble declares."""
        if not self.preamble or self.brackets or self._text(at + 1) != "(":
            return False
        after_star = self._text(at - 1) == "*"
        return before[: -1 if after_star else None][-1:] in (["TYPE"], ["CTYPE"])

    def _function(self, name: Token) -> None:
        """A function is declared; it goes before a type of its name. Raises BadDeclaration if that is a type of C's."""
        if name.text in self.owner.types and name.text not in YIELDING:
            raise BadDeclaration(f"function '{name.text}' has the name of a type", "choose another name").at(
                name.span(self.file)
            )
        self.owner.types.discard(name.text)

    def _is_instance(self, at: int) -> bool:
        """True if types, commas and ``> (`` follow: then the ``<`` before is no comparison."""
        words = self.owner.words
        start = at
        while at < len(self.tokens):
            text = self._text(at)
            is_type = words.get(text) in ("CTYPE", "TYPENAME") or text.rpartition("::")[2] in self.owner.types
            in_template = any(text in names for _, names in self.templates)
            if text == ">":
                return at > start and self._text(at + 1) == "("
            if not (is_type or in_template or text in (",", "*", "const")):
                return False
            at += 1
        return False
