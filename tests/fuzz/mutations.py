"""Texts changed a little or made hostile: words exchanged, left out, doubled; odd characters, numbers, depth."""

from __future__ import annotations

import re
from random import Random

PIECES = re.compile(r"\w+|\s+|[^\w\s]")
ODD = (
    "\0", "\t", "\n", "\\", "\\\n", "\r\n", "\ufeff", "\u202e", "\ud800", "é", "＿", "ᵇ", "١", "//", "/*", "*/", "#",
    "##", "??", "$",
    "@", "`", "'", '"', '"""', "\x7f", "𝒾", "\u2028", "#if 0\n", "#define x x\n", "#include <a>\n", "%", ";", "...",
)  # fmt: skip
WORDS = (
    "0", "1", "-1", "x", "x0", "z0", "i", "n", "T", "float", "int", "if", "else", "for", "while", "return", "break",
    "continue",
    "switch", "case", "default", "do", "struct", "template", "typename", "auto", "const", "void", "sizeof", "this",
    "class",
    "lambda", "def", "np", "None", "True", "import", "in", "not", "and", "or", "is", "yield", "global", "del", "async",
    "9" * 30, "0x" + "f" * 40, "1e999", "1e-999", "0b", "0x", "1__0", "1.5.2", "1j", "0777", "09", "2**64", "-2**63",
    "__import__", "__class__", "operator", "goto", "new", "union", "enum", "complex", "complex<float>", "float8_e5m2",
    "axis", "sum", "range", "print", "len", "raw", "_ind", "_J", "a", "b", "()", "[]", "{}", "->", "::", "<<", "**",
    "==", "=",
    "+=", "//", "<", ">", "!", "~", "&", "&&", "|", "?", ":", ",", ".",
)  # fmt: skip


def mutated_text(text: str, random: Random) -> str:
    """The text after one to three changes."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = _changed(text, random)
    return text


def mutated(texts: dict[str, object], random: Random) -> dict[str, object]:
    """The texts, one or two of them changed; now and then one is replaced by something else."""
    changed = dict(texts)
    names = [name for name, value in texts.items() if isinstance(value, str) and name not in ("fp", "bounds")]
    weights = [max(len(str(texts[name])), 4) for name in names]
    for name in random.choices(names, weights, k=random.choice((1, 1, 1, 2))):
        changed[name] = mutated_text(str(changed[name]), random)
    if random.random() < 0.02:
        changed[random.choice(names)] = random.choice((None, 1, b"x", "", " ", "\0", ["x"], "𝒾"))
    return changed


def _changed(text: str, random: Random) -> str:
    pieces = PIECES.findall(text) or [""]
    at, other = random.randrange(len(pieces)), random.randrange(len(pieces))
    match random.randrange(12):
        case 0:
            del pieces[at]
        case 1:
            pieces.insert(at, pieces[other])
        case 2:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case 3 | 4:
            pieces[at] = random.choice(WORDS)
        case 5 | 6:
            pieces.insert(at, f" {random.choice(WORDS)} ")
        case 7:
            pieces.insert(at, random.choice(ODD))
        case 8:
            del pieces[min(at, other) : max(at, other)]
        case 9:
            pieces = pieces[:at]
        case 10:
            pieces[at] = _deep(pieces[at], random)
        case 11:
            low, high = sorted((at, other))
            pieces[at:at] = pieces[low:high]
    return "".join(pieces)


def _deep(piece: str, random: Random) -> str:
    """Something nested or long."""
    count = random.choice((5, 50, 100, 500, 3000))
    pairs = (
        ("(", ")"), ("[", "]"), ("{", "}"), ("-", ""), ("!", ""), ("~", ""), ("sin(", ")"), ("if (x) ", ""),
        ("x ? x : ", ""),
        ("not ", ""), ("x + ", ""), ("x = ", ""), ("x, ", ""), ("*", ""), ("&", ""), ("x.", ""), ("float ", ""),
        ("x if x else ", ""), ("", "()"), ("", "[0]"), ("", ".real"), ("(float)", ""), ("x**", ""),
    )  # fmt: skip
    left, right = random.choice(pairs)
    return left * count + piece + right * count
