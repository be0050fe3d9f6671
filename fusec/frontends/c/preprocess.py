"""The preprocessor: macros, conditional text and includes, on tokens that keep their places in the text."""

from __future__ import annotations

import re
from collections.abc import Callable

from fusec.base.diagnostics import did_you_mean
from fusec.base.records import dataclass, field
from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError
from fusec.errors.language import (
    BadDirective,
    MacroArguments,
    TooDeep,
    TooLarge,
    Unbalanced,
    UnknownHeader,
    UnknownOption,
)
from fusec.frontends.c.tokens import scan
from fusec.frontends.grammar_tables import MAX_TOKENS, Token

HEADERS = re.compile(
    r"cupy/.*|thrust/.*|cuda/.*|cuda_(fp16|bf16|fp8|runtime)\.h|cuComplex\.h|math_constants\.h|c?(math|float|limits|complex)(\.h)?"
    r"|c?std(int|def|bool|lib|io)(\.h)?|type_traits|utility|algorithm|limits|complex"
)
# Texts see themselves compiled as CUDA C++ by NVRTC for a recent device, and never as HIP.
PREDEFINED = {
    "__CUDACC__": "1",
    "__CUDACC_RTC__": "1",
    "__CUDA_ARCH__": "900",
    "__cplusplus": "201703L",
    "__FUSEC__": "1",
}
MAX_NESTING = 64
DIRECTIVES = (
    "define",
    "undef",
    "if",
    "ifdef",
    "ifndef",
    "elif",
    "else",
    "endif",
    "include",
    "pragma",
    "error",
    "warning",
)


@dataclass(frozen=True)
class Macro:
    """A macro."""

    name: str
    params: tuple[str, ...] | None  # None if it takes none
    body: tuple[Token, ...]


@dataclass
class _Branch:
    """An open #if."""

    live: bool  # the text of its current branch counts
    taken: bool  # a branch was taken
    outer: bool  # the text around it counts
    start: Token
    otherwise: bool = False  # its #else was met


@dataclass
class Preprocessor:
    """The macros of one kernel while its texts are parsed in turn."""

    condition: Callable[[list[Token], SourceFile], int]  # evaluates the tokens of an ``#if``, which takes a parser
    macros: dict[str, Macro] = field(default_factory=dict)
    work: int = 0  # tokens that macros have made

    def __post_init__(self) -> None:
        for name, value in PREDEFINED.items():
            self._define_text(name, value)

    def define_options(self, options: tuple[str, ...]) -> bool:
        """Take compiler options; True if float literals without suffix are single precision. Raises UnknownOption."""
        single = False
        words = iter(options)
        for word in words:
            if word in ("-D", "-U", "--define-macro", "--undefine-macro"):
                word = ("-D" if "d" in word.lower()[:4] and "undef" not in word and word != "-U" else "-U") + next(
                    words, ""
                )
            if word.startswith("-D") and re.fullmatch(r"-D[A-Za-z_]\w*(=.*)?", word, re.DOTALL):
                name, _, value = word[2:].partition("=")
                self._define_text(name, value if "=" in word else "1")
            elif word.startswith("-U"):
                self.macros.pop(word[2:], None)
            elif word == "-fsingle-precision-constant":
                single = True
            elif not word.startswith(("--std=", "-std=")):
                raise _option(word)
        return single

    def _define_text(self, name: str, value: str) -> None:
        self.macros[name] = Macro(name, None, tuple(scan(SourceFile("options", value))))

    def read(self, file: SourceFile) -> list[Token]:
        """The tokens of a text after all directives and macros. Raises the errors of this module's catalogue."""
        live: list[Token] = []
        out: list[Token] = []
        branches: list[_Branch] = []
        for token in scan(file):
            if token.type == "DIRECTIVE":
                out += self.expand(live, file)
                live = []
                self._directive(token, file, branches)
            elif not branches or branches[-1].live:
                live.append(token)
        if branches:
            raise BadDirective("this #if has no #endif", "end it with #endif").at(branches[-1].start.span(file))
        return out + self.expand(live, file)

    # --- directives ---

    def _directive(self, token: Token, file: SourceFile, branches: list[_Branch]) -> None:
        words = scan(file, token.start + 1, token.end)
        live = not branches or branches[-1].live
        if not words:
            return
        name, rest = words[0], words[1:]
        match name.text:
            case "if" | "ifdef" | "ifndef":
                truth = live and self._test(name.text, rest, token, file)
                branches.append(_Branch(truth, truth, live, token))
                if len(branches) > MAX_NESTING:
                    raise TooDeep(MAX_NESTING, "#if directives").at(token.span(file))
            case "elif" | "else" | "endif":
                self._branch(name.text, rest, token, file, branches)
            case _ if live:
                self._command(name, rest, token, file)

    def _test(self, word: str, rest: list[Token], token: Token, file: SourceFile) -> bool:
        if word == "if":
            return self._truth(rest, token, file)
        if not rest or rest[0].type != "NAME":
            raise BadDirective(f"#{word} needs a name", f"write #{word} NAME").at(token.span(file))
        return (rest[0].text in self.macros) == (word == "ifdef")

    def _truth(self, rest: list[Token], token: Token, file: SourceFile) -> bool:
        tokens = self.expand(_without_defined(rest, self.macros, file), file)
        if not tokens:
            raise BadDirective("#if needs a condition", "write #if EXPRESSION").at(token.span(file))
        return self.condition(tokens, file) != 0

    def _branch(self, word: str, rest: list[Token], token: Token, file: SourceFile, branches: list[_Branch]) -> None:
        if not branches:
            raise BadDirective(f"#{word} without #if", "remove it, or add the #if before it").at(token.span(file))
        branch = branches[-1]
        if word == "endif":
            branches.pop()
            return
        if branch.otherwise:
            raise BadDirective(f"#{word} after #else", "an #if has one #else, and it comes last").at(token.span(file))
        branch.otherwise = word == "else"
        branch.live = branch.outer and not branch.taken and (word == "else" or self._truth(rest, token, file))
        branch.taken = branch.taken or branch.live

    def _command(self, name: Token, rest: list[Token], token: Token, file: SourceFile) -> None:
        match name.text:
            case "define":
                self._define(rest, token, file)
            case "undef" if rest:
                self.macros.pop(rest[0].text, None)
            case "include":
                header = file.text[name.end : token.end].strip().strip('<>"')
                if not HEADERS.fullmatch(header):
                    raise UnknownHeader(header).at(Span(file, name.end, token.end))
            case "error":
                raise BadDirective(token.text, "the text itself refuses to be compiled").at(token.span(file))
            case "pragma" | "warning" | "line":
                return
            case word:
                known = did_you_mean(word, DIRECTIVES)
                cure = f"{known} " if known else ""
                raise BadDirective(f"unknown directive '#{word}'", f"{cure}known: {', '.join(DIRECTIVES)}").at(
                    token.span(file)
                )

    def _define(self, rest: list[Token], token: Token, file: SourceFile) -> None:
        if not rest or rest[0].type != "NAME":
            raise BadDirective("#define needs a name", "write #define NAME TEXT").at(token.span(file))
        name, body = rest[0], rest[1:]
        params: tuple[str, ...] | None = None
        if body and body[0].text == "(" and body[0].start == name.end:
            texts = [each.text for each in body]
            if ")" not in texts:
                raise BadDirective("the macro's parameters never end", "close them with ')'").at(body[0].span(file))
            close = texts.index(")")
            params = tuple(each for each in texts[1:close] if each != ",")
            body = body[close + 1 :]
            if not all(re.fullmatch(r"[A-Za-z_]\w*|\.\.\.", each) for each in params):
                raise BadDirective("macro parameters are names", "write #define NAME(a, b) TEXT").at(token.span(file))
            if len(set(params)) < len(params):
                raise BadDirective(f"macro '{name.text}' has two parameters of one name", "rename one").at(
                    token.span(file)
                )
        if len(body) > MAX_TOKENS:
            raise TooLarge(MAX_TOKENS, "tokens").at(token.span(file))
        self.macros[name.text] = Macro(name.text, params, tuple(body))

    # --- macros ---

    def expand(self, tokens: list[Token], file: SourceFile, depth: int = 0) -> list[Token]:
        """The tokens with all macros replaced. Raises TooLarge before an expansion gets out of hand."""
        macros = self.macros
        if not any(token.text in macros for token in tokens):
            return tokens
        if depth > MAX_NESTING:
            raise TooDeep(MAX_NESTING, "macros").at(tokens[0].span(file))
        out: list[Token] = []
        # A stack of tokens still to read, last first, each with the macros it came out of (those do not apply again).
        pending: list[tuple[Token, frozenset[str]]] = [(token, frozenset()) for token in reversed(tokens)]
        while pending:
            token, hidden = pending.pop()
            macro = macros.get(token.text) if token.type == "NAME" else None
            if macro is None or macro.name in hidden or (macro.params is not None and not _opens(pending)):
                out.append(token)
                continue
            end = token.end
            body = [Token(each.type, each.text, -1, -1) for each in macro.body]
            if macro.params is not None:
                args, end = self._arguments(macro, token, pending, file)
                body = self._substitute(macro, args, Span(file, token.start, end), depth)
            self.work += len(body) + 1
            if self.work > MAX_TOKENS:
                raise TooLarge(MAX_TOKENS, "tokens, after macros").at(token.span(file))
            inner = hidden | {macro.name}
            pending += [
                (each if each.end >= 0 else Token(each.type, each.text, token.start, end), inner)
                for each in reversed(_pasted(body))
            ]
        return out

    def _arguments(
        self, macro: Macro, use: Token, pending: list[tuple[Token, frozenset[str]]], file: SourceFile
    ) -> tuple[list[list[Token]], int]:
        """The arguments of a use, which follow on `pending`, and where the use ends."""
        pending.pop()
        args: list[list[Token]] = [[]]
        depth = 1
        assert macro.params is not None, "only function macros take arguments"
        while pending:
            token, _ = pending.pop()
            depth += (token.text in "([{") - (token.text in ")]}") if token.type == "PUNCTUATION" else 0
            if depth == 0:
                break
            gathered = "..." in macro.params and len(args) == len(macro.params)
            if token.text == "," and depth == 1 and not gathered:
                args.append([])
            else:
                args[-1].append(token)
        else:
            raise Unbalanced("(", f"after macro '{macro.name}' is never closed").at(use.span(file))
        if args == [[]] and not macro.params:
            args = []
        if "..." in macro.params and len(args) == len(macro.params) - 1:
            args.append([])
        if len(args) != len(macro.params):
            raise MacroArguments(macro.name, len(macro.params), len(args)).at(use.span(file))
        return args, token.end

    def _substitute(self, macro: Macro, args: list[list[Token]], use: Span, depth: int) -> list[Token]:
        """The body with arguments in place; tokens of the body itself have end -1, to be given the place of the use."""
        assert macro.params is not None, "only function macros take arguments"
        names = ["__VA_ARGS__" if name == "..." else name for name in macro.params]
        raw = dict(zip(names, args, strict=True))  # what is joined by ## is not expanded first
        table = {name: self.expand(arg, use.file, depth + 1) for name, arg in zip(names, args, strict=True)}
        out: list[Token] = []
        for at, token in enumerate(macro.body):
            if token.text == "#" and at + 1 < len(macro.body) and macro.body[at + 1].text in table:
                raise BadDirective(f"macro '{macro.name}' makes a string with #", "kernels have no strings").at(use)
            if token.type == "NAME" and token.text in table and "##" in _beside(macro.body, at):
                out += raw[token.text] or [Token("EMPTY", "", -1, -1)]
            elif token.type == "NAME" and token.text in table:
                out += table[token.text]
            else:
                out.append(Token(token.type, token.text, -1, -1))
            if len(out) > MAX_TOKENS:
                raise TooLarge(MAX_TOKENS, "tokens, after macros").at(use)
        return out


def _beside(body: tuple[Token, ...], at: int) -> tuple[str, ...]:
    return tuple(body[k].text for k in (at - 1, at + 1) if 0 <= k < len(body))


def _opens(pending: list[tuple[Token, frozenset[str]]]) -> bool:
    return bool(pending) and pending[-1][0].text == "("


def _pasted(tokens: list[Token]) -> list[Token]:
    """The tokens with ``a ## b`` joined to one; either may be EMPTY, from an argument without tokens."""
    if all(token.text != "##" for token in tokens):
        return tokens
    out: list[Token] = []
    words = iter(tokens)
    for token in words:
        following = next(words, None) if token.text == "##" and out else None
        if following is None:
            out.append(token)
        else:
            left = out.pop()
            joined = scan(SourceFile("##", left.text + following.text)) or [left]
            out += [Token(each.type, each.text, -1, -1) for each in joined]
    return [token for token in out if token.type != "EMPTY"]


def _without_defined(tokens: list[Token], macros: dict[str, Macro], file: SourceFile) -> list[Token]:
    """The tokens of a condition with ``defined X`` and ``defined(X)`` replaced by 1 or 0. Raises BadDirective."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.text == "defined":
            bracket = tokens[at : at + 1] and tokens[at].text == "("
            words = tokens[at + 1 : at + 3] if bracket else tokens[at : at + 1]
            if not words or words[0].type != "NAME" or (bracket and words[-1].text != ")"):
                raise BadDirective("defined needs a name", "write defined(NAME)").at(token.span(file))
            name = words[0]
            at += 3 if bracket else 1
            token = Token("NUMBER", "1" if name.text in macros else "0", token.start, name.end)
        out.append(token)
    return out


def _option(word: str) -> FusecError:
    if "fast" in word or "fmad" in word or "ftz" in word or "prec-" in word:
        return UnknownOption(word, "fusec has no silent fast math: the same bits on every target").at()
    return UnknownOption(word).at()
