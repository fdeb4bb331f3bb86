"""The conditions of expectations: a small language over what a run says of itself. It has no calls, no attributes, no numbers.

    expression := term ("or" term)*
    term       := factor ("and" factor)*
    factor     := "not" factor | "(" expression ")" | comparison
    comparison := NAME ("==" | "!=" | "~") STRING
                | NAME ("<" | "<=" | ">" | ">=") VERSION
                | NAME ["not"] "in" ( "(" STRING ("," STRING)* [","] ")" | the same in square brackets )
    NAME       := device | driver | os | version | language | python | numpy | machine | policy.<axis>
    STRING     := text in double or single quotes, without escapes
    VERSION    := a STRING of numbers with dots

`~` matches a glob (`*`, `?`, `[abc]`), case counts. `os` is linux, macos or windows. What a run does not tell is "", which is
neither before nor after any version.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..outside import printable
from .versions import NUMBERS, version_key

__all__ = ["NAMES", "And", "Comparison", "Node", "Not", "Or", "When", "WhenError", "is_name", "parse"]

#: Names that stand for what a run tells; `policy.<axis>` besides.
NAMES = ("device", "driver", "os", "version", "language", "python", "numpy", "machine")
LONGEST = 2000  #: characters
DEEPEST = 40  #: parentheses and `not` in each other
_AXIS = re.compile(r"policy\.[a-z][a-z0-9_-]{0,63}")
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)|(?P<string>"[^"\r\n]*"|'[^'\r\n]*')|(?P<op>==|!=|<=|>=|[<>~])|(?P<mark>[()\[\],])"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)"""
)
_ORDER: dict[str, Callable[[object, object], bool]] = {
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}


class WhenError(Exception):
    """A condition that cannot be read or decided; `position` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"character {position + 1}: {printable(message)}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Comparison:
    """One name against one literal, or against several for `in`."""

    name: str
    op: str
    values: tuple[str, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    of: "Node"


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    of: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them."""

    of: "tuple[Node, ...]"


Node = Comparison | Not | And | Or


@dataclass(frozen=True, slots=True)
class When:
    """A condition: its text and what it means."""

    text: str
    node: Node

    def holds(self, info: Mapping[str, str]) -> bool:
        """Whether it is true of a run. WhenError where a name that must be a version holds something else."""
        return _holds(self.node, info)


def _holds(node: Node, info: Mapping[str, str]) -> bool:
    match node:
        case Comparison():
            return _compared(node, info.get(node.name, ""))
        case Not(of):
            return not _holds(of, info)
        case And(parts):
            return all(_holds(part, info) for part in parts)
        case Or(parts):
            return any(_holds(part, info) for part in parts)


def _compared(node: Comparison, actual: str) -> bool:
    if node.op == "~":
        return fnmatchcase(actual, node.values[0])
    if node.op in _ORDER:
        if not actual:
            return False
        key = version_key(actual)
        if key is None:
            raise WhenError(f"{node.name} is {actual[:60]!r}, no version, and {node.op} orders versions", node.position)
        return _ORDER[node.op](key, version_key(node.values[0]))
    return (actual in node.values) == (node.op in ("==", "in"))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text[:60])


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            what = (
                "a string that does not end" if text[at] in "\"'" else f"{text[at]!r}, which the language does not have"
            )
            raise WhenError(what, at)
        if match.lastgroup != "space":
            found.append(_Token(match.lastgroup or "", match[0], at))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


class _Parser:
    """Recursive descent over the tokens; `deep` bounds the recursion."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.deep = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self, *texts: str) -> _Token | None:
        token = self.token
        if token.kind in ("string", "end") or token.text not in texts:
            return None
        self.at += 1
        return token

    def expression(self) -> Node:
        parts = [self.term()]
        while self.take("or"):
            parts.append(self.term())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def term(self) -> Node:
        parts = [self.factor()]
        while self.take("and"):
            parts.append(self.factor())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def factor(self) -> Node:
        opened = self.take("not", "(")
        if opened is None:
            return self.comparison()
        self.deep += 1
        if self.deep > DEEPEST:
            raise WhenError(f"deeper than {DEEPEST} levels", opened.position)
        if opened.text == "not":
            node: Node = Not(self.factor())
        else:
            node = self.expression()
            self.close(")", opened)
        self.deep -= 1
        return node

    def comparison(self) -> Node:
        token = self.token
        if token.kind != "word" or not is_name(token.text):
            raise WhenError(f"{token} where a name is due; allowed: {', '.join(NAMES)}, policy.<axis>", token.position)
        self.at += 1
        op = self.token
        if self.take("==", "!=", "~"):
            return Comparison(token.text, op.text, (self.string(),), token.position)
        if self.take(*_ORDER):
            at = self.token.position
            value = self.string()
            if not NUMBERS.fullmatch(value):
                raise WhenError(f"{value[:60]!r} is no version; allowed: numbers with dots, as in '1.2.0'", at)
            return Comparison(token.text, op.text, (value,), token.position)
        negated = self.take("not") is not None
        if self.take("in"):
            return Comparison(token.text, "not in" if negated else "in", self.strings(), token.position)
        due = "in" if negated else "==, !=, ~, <, <=, >, >=, in or not in"
        raise WhenError(f"{self.token} after {token.text}; allowed there: {due}", self.token.position)

    def string(self) -> str:
        token = self.token
        if token.kind != "string":
            raise WhenError(f"{token} where a text in quotes is due", token.position)
        self.at += 1
        return token.text[1:-1]

    def strings(self) -> tuple[str, ...]:
        opened = self.take("(", "[")
        if opened is None:
            raise WhenError(f"{self.token} where a list in parentheses is due", self.token.position)
        end = ")" if opened.text == "(" else "]"
        found = [self.string()]
        while self.take(",") and self.token.kind == "string":
            found.append(self.string())
        self.close(end, opened)
        return tuple(found)

    def close(self, end: str, opened: _Token) -> None:
        if not self.take(end):
            text = f"{self.token} where the {end} is due that closes character {opened.position + 1}"
            raise WhenError(text, self.token.position)


def is_name(text: str) -> bool:
    """Whether a text is a name of the language."""
    return text in NAMES or _AXIS.fullmatch(text) is not None


def parse(text: str) -> When:
    """The condition that a text says. WhenError for one that says none."""
    if len(text) > LONGEST:
        raise WhenError(f"longer than {LONGEST} characters", LONGEST)
    parser = _Parser(text)
    node = parser.expression()
    if parser.token.kind != "end":
        raise WhenError(f"{parser.token} after the end of the expression", parser.token.position)
    return When(text, node)
