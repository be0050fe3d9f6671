"""Errors in kernel text: parameters, syntax, names, types (codes F100 to F164), and in TOML files of it (F400 on).

CuPy's texts where it has them.
"""

from __future__ import annotations

from fusec.errors.base import Described, FusecTypeError, Named, UserError

# --- parameters and options -------------------------------------------------------------------------------------


class ParameterSyntax(UserError, code="F100"):
    """A parameter declaration that is not a type and a name."""

    message = "Syntax error: {declaration}"
    label = "a parameter is '[raw] TYPE NAME'"
    declaration: str
    cure: str = "declare parameters as in 'float32 x, raw T y', separated by single commas"


class ParameterKeyword(UserError, code="F101"):
    """An unknown keyword before the type of a parameter."""

    message = 'Unknown keyword "{word}"'
    word: str
    cure: str


class ParameterType(Named, code="F102", exception=FusecTypeError):
    """A parameter type that is neither a placeholder nor a dtype."""

    message = "data type '{name}' not understood"
    cure: str


class ParameterName(Named, code="F103"):
    """A parameter name that is reserved, or is not an identifier."""

    message = "Can not use '{name}' as a parameter name"
    cure: str


class ParameterTwice(Named, code="F104"):
    """Two parameters with the same name."""

    message = "parameter '{name}' is declared twice"
    hint = "inputs and outputs share one set of names"


class UnknownOption(UserError, code="F105"):
    """A compiler option that fusec does not take."""

    message = "unknown option '{option}'"
    option: str
    cure: str = "options are -DNAME[=VALUE], -UNAME, --std=... and -fsingle-precision-constant"


# --- limits -----------------------------------------------------------------------------------------------------


class TooLarge(UserError, code="F110"):
    """A kernel text that exceeds the limits that keep compilation quick."""

    message = "kernel text is too large: more than {limit} {what}"
    hint = "split the kernel, or compute repeated parts in a loop or a device function"
    limit: int
    what: str


class TooDeep(UserError, code="F111"):
    """Nesting that exceeds the limit."""

    message = "{what} are nested more than {limit} deep"
    hint = "name an intermediate result, or move the inner part to a device function"
    limit: int
    what: str


# --- tokens and directives --------------------------------------------------------------------------------------


class StrayCharacter(UserError, code="F115"):
    """A character that starts no token."""

    message = "unexpected character {char!r}"
    hint = "names are ASCII letters, digits and underscores"
    char: str


class Unterminated(UserError, code="F116"):
    """A comment, string or character that never ends."""

    message = "this {what} never ends"
    hint = "close it with {closer}"
    what: str
    closer: str


class BadNumber(UserError, code="F117"):
    """A malformed number, or one that no type holds."""

    message = "'{number}' is not a number{reason}"
    number: str
    reason: str
    cure: str = "suffixes are u, l, ll for integers and f for floats; 0x, 0b and 0 start other bases"


class BadDirective(Described, code="F118"):
    """A preprocessor line that is malformed or unknown."""

    cure: str = (
        "known directives: #define, #undef, #if, #ifdef, #ifndef, #elif, #else, #endif, #include, #pragma, #error"
    )


class UnknownHeader(UserError, code="F119"):
    """An include for which fusec has no counterpart."""

    message = "header '{header}' is not available"
    hint = "fusec reads no files; copy the needed definitions into the preamble"
    header: str


class MacroArguments(Named, code="F120"):
    """A function macro with the wrong number of arguments."""

    message = "macro '{name}' takes {expected:argument}, given {given}"
    hint = "a comma separates macro arguments unless it is inside parentheses"
    expected: int
    given: int


# --- syntax -----------------------------------------------------------------------------------------------------


class UnexpectedToken(UserError, code="F125"):
    """A token that does not fit the syntax."""

    message = "unexpected '{found}'"
    label = "{expected}"
    found: str
    expected: str
    cure: str = ""


class UnexpectedEnd(UserError, code="F126"):
    """A text that ends in the middle of something."""

    message = "unexpected end of text"
    label = "{expected}"
    expected: str
    cure: str = ""


class Unbalanced(UserError, code="F127"):
    """An unbalanced bracket."""

    message = "'{bracket}' {reason}"
    hint = "check the brackets before this point"
    bracket: str
    reason: str


class NotSupported(Described, code="F128"):
    """C++ or CUDA outside of the portable language."""

    message = "{what} not part of the kernel language"


class NotElementwise(Named, code="F129"):
    """Something that needs blocks of threads."""

    message = "'{name}' is not available in an elementwise kernel"
    cure: str


# --- names ------------------------------------------------------------------------------------------------------


class UnknownName(Named, code="F135"):
    """A name that nothing declares."""

    message = "unknown name '{name}'"
    cure: str


class UnknownType(Named, code="F136", exception=FusecTypeError):
    """A type name that nothing declares."""

    message = "unknown type '{name}'"
    cure: str


class UnknownFunction(Named, code="F137"):
    """A call of an unknown function."""

    message = "unknown function '{name}'"
    cure: str


class UnknownMember(UserError, code="F138"):
    """An unknown member of an object."""

    message = "{owner} has no member '{name}'"
    owner: str
    name: str
    cure: str


class Redeclared(Named, code="F139"):
    """A second declaration in the same scope."""

    message = "'{name}' is already declared in this scope"
    hint = "rename one, or assign to the first instead of declaring it again"


class HidesParameter(Named, code="F140"):
    """A local variable of the operation that hides a parameter."""

    message = "'{name}' is {role}; a variable of that name would hide it"
    role: str
    cure: str


# --- types ------------------------------------------------------------------------------------------------------


class BadOperands(UserError, code="F145", exception=FusecTypeError):
    """Operands that an operator does not take."""

    message = "operator '{op}' does not take {types}"
    op: str
    types: str
    cure: str


class CannotConvert(UserError, code="F146", exception=FusecTypeError):
    """A value whose type cannot be converted."""

    message = "cannot convert {given} to {wanted}"
    given: str
    wanted: str
    cure: str = ""


class AssignToConst(Described, code="F147", exception=FusecTypeError):
    """An assignment to something read-only."""

    message = "cannot assign to {what}"


class NotAPlace(UserError, code="F148", exception=FusecTypeError):
    """A value where a variable or an array element is needed."""

    message = "{what} needs a variable or an array element"
    hint = "the result of an expression has no address; name it first"
    what: str


class ArgumentCount(Named, code="F149", exception=FusecTypeError):
    """A call with too many or too few arguments."""

    message = "'{name}' takes {expected:argument}, given {given}"
    expected: str
    given: int
    cure: str = ""


class BadArgument(Named, code="F150", exception=FusecTypeError):
    """An argument whose type the function does not take."""

    message = "'{name}' does not take {given}"
    given: str
    cure: str


class NotAValue(Described, code="F151", exception=FusecTypeError):
    """A name that must be indexed or called to give a value."""

    message = "{what} is not a value"


class BadIndex(Described, code="F152", exception=FusecTypeError):
    """An index that does not fit what is indexed."""


class NotConstant(UserError, code="F153"):
    """An expression that must be an integer constant of the right range."""

    message = "{what} must be an integer constant"
    hint = "use a number, a #define, a const integer or a template argument"
    what: str


class TemplateMismatch(Named, code="F154", exception=FusecTypeError):
    """A template whose parameters cannot be deduced from the call."""

    message = "cannot call template '{name}': {reason}"
    hint = "give the types: {name}<...>(...)"
    reason: str


class Recursion(Named, code="F155"):
    """A function that calls itself, directly or indirectly."""

    message = "function '{name}' calls itself"
    hint = "kernels have no call stack; use a loop"


# --- statements -------------------------------------------------------------------------------------------------


class Misplaced(UserError, code="F160"):
    """A statement outside of the statement to which it belongs."""

    message = "'{word}' outside of {owner}"
    word: str
    owner: str
    cure: str


class Fallthrough(UserError, code="F161"):
    """A case that runs into the next one."""

    message = "this case falls through to the next one"
    hint = "end it with break, continue or return, or give both the same labels"


class BadReturn(Described, code="F162"):
    """A return that does not fit the function."""


class BadDeclaration(Described, code="F163"):
    """An invalid declaration."""


class NoEffect(UserError, code="F164"):
    """A statement that changes nothing."""

    message = "this statement has no effect"
    cure: str


# --- kernel files -----------------------------------------------------------------------------------------------


class NotToml(UserError, code="F400"):
    """A kernel file that is not TOML."""

    message = "not a TOML file: {problem}"
    hint = "a kernel file holds one table [kernel.NAME], [reduction.NAME] or [scan.NAME] for each kernel"
    problem: str


class NoKernels(UserError, code="F401"):
    """A kernel file without kernels."""

    message = "{file} defines no kernel"
    hint = (
        "add a table [kernel.NAME] with in_params, out_params and operation, or [reduction.NAME] or [scan.NAME] with"
        " map_expr, reduce_expr or scan_expr, and post_map_expr"
    )
    file: str


class BadKernelTable(Named, code="F402"):
    """A table of a kernel with a missing, unknown or mistyped key."""

    message = "kernel '{name}': {problem}"
    hint = (
        "keys: in_params, out_params, operation, of a reduction map_expr, reduce_expr, post_map_expr; optional:"
        " preamble, loop_prep, after_loop, options, types, scalars, fp, of a reduction also identity, reduce_type,"
        " shape, axis; of a scan scan_expr, inclusive and segments"
    )
    problem: str


class UnknownTable(UserError, code="F405"):
    """An entry at the top level of a kernel file that is not a table of kernels."""

    message = "{problem}"
    hint = "a kernel file holds tables [kernel.NAME], [reduction.NAME] and [scan.NAME], and nothing else"
    problem: str
