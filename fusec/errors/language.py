"""Errors in kernel text: parameters, syntax, names, types (codes F100 to F199). CuPy's texts where it has them."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecError, FusecTypeError, UserError

# --- parameters and options -------------------------------------------------------------------------------------


class ParameterSyntax(UserError):
    """A parameter declaration without a type and a name."""

    code: ClassVar[str] = "F100"
    message: ClassVar[str] = "Syntax error: {declaration}"
    label: ClassVar[str] = "a parameter is '[raw] TYPE NAME'"
    hint: ClassVar[str] = "{cure}"
    declaration: str
    cure: str = "declare parameters as in 'float32 x, raw T y', separated by single commas"


class ParameterKeyword(UserError):
    """A word before the type that is no keyword of parameters."""

    code: ClassVar[str] = "F101"
    message: ClassVar[str] = 'Unknown keyword "{word}"'
    hint: ClassVar[str] = "{cure}"
    word: str
    cure: str


class ParameterType(UserError):
    """A parameter type that is neither a placeholder nor a dtype."""

    code: ClassVar[str] = "F102"
    message: ClassVar[str] = "data type '{name}' not understood"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    cure: str


class ParameterName(UserError):
    """A parameter name that the language keeps for itself, or that is no name."""

    code: ClassVar[str] = "F103"
    message: ClassVar[str] = "Can not use '{name}' as a parameter name"
    hint: ClassVar[str] = "{cure}"
    name: str
    cure: str


class ParameterTwice(UserError):
    """Two parameters of one name."""

    code: ClassVar[str] = "F104"
    message: ClassVar[str] = "parameter '{name}' is declared twice"
    hint: ClassVar[str] = "inputs and outputs share one set of names"
    name: str


class UnknownOption(UserError):
    """A compiler option that fusec does not take."""

    code: ClassVar[str] = "F105"
    message: ClassVar[str] = "unknown option '{option}'"
    hint: ClassVar[str] = "{cure}"
    option: str
    cure: str = "options are -DNAME[=VALUE], -UNAME, --std=... and -fsingle-precision-constant"


# --- limits -----------------------------------------------------------------------------------------------------


class TooLarge(UserError):
    """A text beyond the bounds that keep compilation quick."""

    code: ClassVar[str] = "F110"
    message: ClassVar[str] = "kernel text is too large: more than {limit} {what}"
    hint: ClassVar[str] = "split the kernel, or compute repeated parts in a loop or a device function"
    limit: int
    what: str


class TooDeep(UserError):
    """Nesting beyond the bound."""

    code: ClassVar[str] = "F111"
    message: ClassVar[str] = "{what} are nested more than {limit} deep"
    hint: ClassVar[str] = "name an intermediate result, or move the inner part to a device function"
    limit: int
    what: str


# --- tokens and directives --------------------------------------------------------------------------------------


class StrayCharacter(UserError):
    """A character that starts no token."""

    code: ClassVar[str] = "F115"
    message: ClassVar[str] = "unexpected character {char!r}"
    hint: ClassVar[str] = "names are ASCII letters, digits and underscores"
    char: str


class Unterminated(UserError):
    """A comment, string or character that never ends."""

    code: ClassVar[str] = "F116"
    message: ClassVar[str] = "this {what} never ends"
    hint: ClassVar[str] = "close it with {closer}"
    what: str
    closer: str


class BadNumber(UserError):
    """A number that C does not allow, or that no type holds."""

    code: ClassVar[str] = "F117"
    message: ClassVar[str] = "'{number}' is not a number{reason}"
    hint: ClassVar[str] = "{cure}"
    number: str
    reason: str
    cure: str = "suffixes are u, l, ll for integers and f for floats; 0x, 0b and 0 start other bases"


class BadDirective(UserError):
    """A preprocessor line that is malformed or unknown."""

    code: ClassVar[str] = "F118"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str = (
        "known directives: #define, #undef, #if, #ifdef, #ifndef, #elif, #else, #endif, #include, #pragma, #error"
    )


class UnknownHeader(UserError):
    """An include that fusec has no counterpart for."""

    code: ClassVar[str] = "F119"
    message: ClassVar[str] = "header '{header}' is not available"
    hint: ClassVar[str] = "fusec reads no files; copy the needed definitions into the preamble"
    header: str


class MacroArguments(UserError):
    """A function macro used with the wrong number of arguments."""

    code: ClassVar[str] = "F120"
    message: ClassVar[str] = "macro '{name}' takes {expected} argument(s), given {given}"
    hint: ClassVar[str] = "a comma separates macro arguments unless it is inside parentheses"
    name: str
    expected: int
    given: int


# --- syntax -----------------------------------------------------------------------------------------------------


class UnexpectedToken(UserError):
    """A token that does not fit the syntax."""

    code: ClassVar[str] = "F125"
    message: ClassVar[str] = "unexpected '{found}'"
    label: ClassVar[str] = "{expected}"
    hint: ClassVar[str] = "{cure}"
    found: str
    expected: str
    cure: str = ""


class UnexpectedEnd(UserError):
    """A text that ends in the middle of something."""

    code: ClassVar[str] = "F126"
    message: ClassVar[str] = "unexpected end of text"
    label: ClassVar[str] = "{expected}"
    hint: ClassVar[str] = "{cure}"
    expected: str
    cure: str = ""


class Unbalanced(UserError):
    """A bracket without its partner."""

    code: ClassVar[str] = "F127"
    message: ClassVar[str] = "'{bracket}' {reason}"
    hint: ClassVar[str] = "check the brackets before this place"
    bracket: str
    reason: str


class NotSupported(UserError):
    """C++ or CUDA that is outside the portable language."""

    code: ClassVar[str] = "F128"
    message: ClassVar[str] = "{what} not part of the kernel language"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class NotElementwise(UserError):
    """Something that needs blocks of threads."""

    code: ClassVar[str] = "F129"
    message: ClassVar[str] = "'{name}' is not available in an elementwise kernel"
    hint: ClassVar[str] = "{cure}"
    name: str
    cure: str


# --- names ------------------------------------------------------------------------------------------------------


class UnknownName(UserError):
    """A name that nothing declares."""

    code: ClassVar[str] = "F135"
    message: ClassVar[str] = "unknown name '{name}'"
    hint: ClassVar[str] = "{cure}"
    name: str
    cure: str


class UnknownType(UserError):
    """A type name that nothing declares."""

    code: ClassVar[str] = "F136"
    message: ClassVar[str] = "unknown type '{name}'"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    cure: str


class UnknownFunction(UserError):
    """A call of something that is no function."""

    code: ClassVar[str] = "F137"
    message: ClassVar[str] = "unknown function '{name}'"
    hint: ClassVar[str] = "{cure}"
    name: str
    cure: str


class UnknownMember(UserError):
    """A member that the object does not have."""

    code: ClassVar[str] = "F138"
    message: ClassVar[str] = "{owner} has no member '{name}'"
    hint: ClassVar[str] = "{cure}"
    owner: str
    name: str
    cure: str


class Redeclared(UserError):
    """A second declaration in the same scope."""

    code: ClassVar[str] = "F139"
    message: ClassVar[str] = "'{name}' is already declared in this scope"
    hint: ClassVar[str] = "rename one, or assign to the first instead of declaring it again"
    name: str


class HidesParameter(UserError):
    """A local variable of the operation with the name of a parameter, which nobody could then reach."""

    code: ClassVar[str] = "F140"
    message: ClassVar[str] = "'{name}' is {role}; a variable of that name would hide it"
    hint: ClassVar[str] = "{cure}"
    name: str
    role: str
    cure: str


# --- types ------------------------------------------------------------------------------------------------------


class BadOperands(UserError):
    """Operands that an operator does not take."""

    code: ClassVar[str] = "F145"
    message: ClassVar[str] = "operator '{op}' does not take {types}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    op: str
    types: str
    cure: str


class CannotConvert(UserError):
    """A value of a type that does not convert."""

    code: ClassVar[str] = "F146"
    message: ClassVar[str] = "cannot convert {given} to {wanted}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    given: str
    wanted: str
    cure: str = ""


class AssignToConst(UserError):
    """An assignment to something that may only be read."""

    code: ClassVar[str] = "F147"
    message: ClassVar[str] = "cannot assign to {what}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class NotAPlace(UserError):
    """A value where something with a place in memory is needed."""

    code: ClassVar[str] = "F148"
    message: ClassVar[str] = "{what} needs a variable or an array element"
    hint: ClassVar[str] = "the result of an expression has no address; name it first"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str


class ArgumentCount(UserError):
    """A call with too many or too few arguments."""

    code: ClassVar[str] = "F149"
    message: ClassVar[str] = "'{name}' takes {expected} argument(s), given {given}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    expected: str
    given: int
    cure: str = ""


class BadArgument(UserError):
    """An argument of a kind that the function does not take."""

    code: ClassVar[str] = "F150"
    message: ClassVar[str] = "'{name}' does not take {given}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str
    cure: str


class NotAValue(UserError):
    """Something that must be indexed or called before it is a value."""

    code: ClassVar[str] = "F151"
    message: ClassVar[str] = "{what} is not a value"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class BadIndex(UserError):
    """An index that does not fit what is indexed."""

    code: ClassVar[str] = "F152"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class NotConstant(UserError):
    """An expression that must be known when the kernel is compiled, or is out of range there."""

    code: ClassVar[str] = "F153"
    message: ClassVar[str] = "{what} must be an integer constant"
    hint: ClassVar[str] = "use a number, a #define, a const integer or a template argument"
    what: str


class TemplateMismatch(UserError):
    """A template whose parameters cannot be found from the call."""

    code: ClassVar[str] = "F154"
    message: ClassVar[str] = "cannot call template '{name}': {reason}"
    hint: ClassVar[str] = "name the types: {name}<...>(...)"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    reason: str


class Recursion(UserError):
    """A function that calls itself, directly or not."""

    code: ClassVar[str] = "F155"
    message: ClassVar[str] = "function '{name}' calls itself"
    hint: ClassVar[str] = "kernels have no call stack; use a loop"
    name: str


# --- statements -------------------------------------------------------------------------------------------------


class Misplaced(UserError):
    """A statement outside of what it belongs to."""

    code: ClassVar[str] = "F160"
    message: ClassVar[str] = "'{word}' outside of {owner}"
    hint: ClassVar[str] = "{cure}"
    word: str
    owner: str
    cure: str


class Fallthrough(UserError):
    """A case that runs into the next one."""

    code: ClassVar[str] = "F161"
    message: ClassVar[str] = "this case falls through to the next one"
    hint: ClassVar[str] = "end it with break, continue or return, or give both the same labels"


class BadReturn(UserError):
    """A return that does not fit the function."""

    code: ClassVar[str] = "F162"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class BadDeclaration(UserError):
    """A declaration that cannot be."""

    code: ClassVar[str] = "F163"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class NoEffect(UserError):
    """An expression as a statement that changes nothing."""

    code: ClassVar[str] = "F164"
    message: ClassVar[str] = "this statement has no effect"
    hint: ClassVar[str] = "{cure}"
    cure: str
