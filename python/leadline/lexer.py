"""Splits a short expression of a user into tokens with positions, for gates and published formulas.

Bounded: an expression is one line of at most `LENGTH_MAX` characters. Nothing is ever evaluated here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from leadline.errors import SpecError

LENGTH_MAX = 1000
DEPTH_MAX = 20

_SEGMENT = r'(?:[A-Za-z0-9_*?-]+|"[^"\n]*")'
_TOKENS = re.compile(
    r"\s*(?:"
    r"(?P<number>\d+(?:\.\d+)?(?:\s?(?!(?:and|or|not|in)\b)[A-Za-zµ%]+(?:\d+(?:\.\d+)?[A-Za-zµ]+)*(?:/s\b)?(?![\w.*]))?)"
    rf'|(?P<name>(?:[A-Za-z_][A-Za-z0-9_*?-]*|\*(?=\.)|"[^"\n]*")(?:\.{_SEGMENT})*)'
    r"|(?P<operator><=|>=|==|!=|[<>()+/,*-])"
    r")"
)


@dataclass(frozen=True)
class Token:
    """`kind` is number, name, operator or end; `position` counts characters from 1."""

    kind: str
    text: str
    position: int


class Tokens:
    """The tokens of one expression, read from left to right; errors name the place."""

    def __init__(self, text: str, source: str, remedy: str) -> None:
        self.text, self.source, self.remedy = text, source, remedy
        self._place = 0
        self._tokens = self._split()

    def _split(self) -> list[Token]:
        if len(self.text) > LENGTH_MAX:
            self.fail(f"longer than {LENGTH_MAX} characters", Token("end", "", LENGTH_MAX + 1))
        found, start = [], 0
        end = len(self.text.rstrip())
        while start < end:
            match = _TOKENS.match(self.text, start)
            if match is None:
                place = start + len(self.text[start:]) - len(self.text[start:].lstrip())
                self.fail(f"{self.text[place]!r} does not belong here", Token("", "", place + 1))
            kind = str(match.lastgroup)
            found.append(Token(kind, match[kind], match.start(kind) + 1))
            start = match.end()
        return [*found, Token("end", "", end + 1)]

    @property
    def next(self) -> Token:
        """The token that comes next, without taking it."""
        return self._tokens[self._place]

    def take(self) -> Token:
        """The next token; at the end, the end again and again."""
        token = self.next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def accept(self, *texts: str) -> Token | None:
        """The next token when it is an operator or word of `texts`."""
        if self.next.text in texts and self.next.kind in ("operator", "name"):
            return self.take()
        return None

    def expect(self, text: str) -> Token:
        """The next token, which must be `text`."""
        return self.accept(text) or self.fail(f"{text!r} is needed, not {shown(self.next)}", self.next)

    def end(self) -> None:
        """Refuse anything that is left."""
        if self.next.kind != "end":
            self.fail(f"{shown(self.next)} does not belong here", self.next)

    def fail(self, message: str, token: Token) -> NoReturn:
        """Raise the SpecError of a place in the expression."""
        excerpt = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        raise SpecError(
            f"{message} (character {token.position} of {excerpt!a})", self.remedy, source=self.source
        )


def shown(token: Token) -> str:
    """A token in an error's words."""
    return "the end" if token.kind == "end" else ascii(token.text)


def segments(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; quotes keep a part with other characters whole."""
    parts = re.findall(_SEGMENT, name)
    return tuple(part[1:-1] if part.startswith('"') else part for part in parts)
