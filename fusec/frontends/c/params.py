"""Parameter declarations: ``[raw] [_non_const] TYPE NAME``, separated by commas, as CuPy writes them."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np

from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BY_NAME, DType, from_numpy
from fusec.base.records import dataclass
from fusec.base.source import SourceFile, Span
from fusec.errors.language import ParameterKeyword, ParameterName, ParameterSyntax, ParameterTwice, ParameterType
from fusec.frontends.c.texts import KernelTexts, ReductionTexts

# The words of kernel.lark and those that classify.py refuses; a set here, since reading the tables takes longer.
RESERVED = frozenset(
    "and and_eq asm auto bitand bitor bool break case char class compl const const_cast constexpr continue decltype"
    " default delete do double else enum explicit extern false float for friend goto if inline int long mutable"
    " namespace new noexcept not not_eq nullptr operator or or_eq private protected public register"
    " reinterpret_cast restrict return short signed sizeof"
    " static static_cast struct switch template this throw true try typedef typename union unsigned using virtual void"
    " volatile while xor xor_eq".split()
)

# Keywords of C++ that no kernel needs; texts that use them as names would not be CUDA C++.
KEYWORDS = frozenset(
    "alignas alignof char16_t char32_t dynamic_cast export static_assert thread_local typeid wchar_t".split()
)
TYPE_WORDS = frozenset("auto bool char double float int long short signed unsigned void".split())


@dataclass(frozen=True)
class ParamDecl:
    """One declared parameter."""

    name: str
    type_name: str  # as written; one character is a placeholder
    dtype: DType | None  # None for a placeholder
    raw: bool  # addressed by the body itself
    non_const: bool  # an input that the body may change (CuPy's ``_non_const``)
    span: Span


def parse_params(text: str, which: Literal["input", "output"], kernel: str = "") -> tuple[ParamDecl, ...]:
    """The declarations in a text; kernel: name of the kernel, for messages.

    Raises ParameterSyntax, ParameterKeyword, ParameterType, ParameterName or ParameterTwice.
    """
    name = "in_params" if which == "input" else "out_params"
    file = SourceFile(f"kernel '{kernel}', {name}" if kernel else name, text)
    if not text.strip():
        return ()
    found: list[ParamDecl] = []
    start = 0
    for part in text.split(","):
        param = _param(part, start, file)
        if any(param.name == other.name for other in found):
            raise ParameterTwice(param.name).at(param.span)
        found.append(param)
        start += len(part) + 1
    return tuple(found)


def parse_both(texts: KernelTexts | ReductionTexts) -> tuple[tuple[ParamDecl, ...], tuple[ParamDecl, ...]]:
    """The inputs and outputs of a kernel. Raises as `parse_params` does, and ParameterTwice."""
    inputs = parse_params(texts.in_params, "input", texts.name)
    outputs = parse_params(texts.out_params, "output", texts.name)
    for param in outputs:
        if any(param.name == other.name for other in inputs):
            raise ParameterTwice(param.name).at(param.span)
    return inputs, outputs


def _param(part: str, start: int, file: SourceFile) -> ParamDecl:
    words = [
        (match.group(), Span(file, start + match.start(), start + match.end())) for match in re.finditer(r"\S+", part)
    ]
    if ";" in part:
        semicolon = start + part.index(";")
        raise ParameterSyntax(part.strip(), "separate parameters with ','").at(Span(file, semicolon, semicolon + 1))
    if len(words) < 2:
        blank = len(part) - len(part.lstrip())
        raise ParameterSyntax(part.strip()).at(
            Span(file, start + min(blank, max(len(part) - 1, 0)), start + len(part.rstrip()))
        )
    (type_name, type_span), (name, name_span) = words[-2:]
    for word, span in words[:-2]:
        if word not in ("raw", "_non_const"):
            names_type = word in BY_NAME or len(word) == 1
            cure = (
                "separate parameters with ','"
                if names_type
                else "the only words before a type are 'raw' and '_non_const'"
            )
            raise ParameterKeyword(word, cure).at(span)
    keywords = {word for word, _ in words[:-2]}
    dtype = None if len(type_name) == 1 else _dtype(type_name, type_span)
    _check_name(name, name_span)
    if len(type_name) == 1 and not re.fullmatch(r"[A-Za-z]", type_name):
        raise ParameterType(type_name, "a placeholder is one letter").at(type_span)
    return ParamDecl(name, type_name, dtype, "raw" in keywords, "_non_const" in keywords, name_span)


def _dtype(name: str, span: Span) -> DType:
    if name in BY_NAME:
        return BY_NAME[name]
    try:
        found = from_numpy(np.dtype(name))
    except (TypeError, ValueError, SyntaxError):
        found = None
    if found is None:
        known = did_you_mean(name, BY_NAME) or f"known types: {', '.join(BY_NAME)}; one letter is a placeholder"
        raise ParameterType(name, known).at(span)
    return found


def _check_name(name: str, span: Span) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ParameterName(name, "a name is letters, digits and underscores, and starts with a letter").at(span)
    if name in KEYWORDS:
        raise ParameterName(name, f"'{name}' is a keyword of C++; choose another name").at(span)
    if name in RESERVED or name in BY_NAME:
        what = "a type" if name in BY_NAME or name in TYPE_WORDS else "a word"
        raise ParameterName(name, f"'{name}' is {what} of the kernel language; choose another name").at(span)
    if name == "i":
        raise ParameterName(name, "'i' is the flat index of the element").at(span)
    if name.startswith("_") and (name == "_J" or not re.fullmatch(r"_[A-Za-z]\d*", name)):
        cure = "names that start with an underscore are reserved, except those of one letter other than _J"
        raise ParameterName(name, cure).at(span)
