"""The words of inserted statements: guards over a stored status, wrapped as black would wrap them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from kvlint.fixing.blocks import Statement

_WIDTH = 88
_TAB = 4


@dataclass(frozen=True, slots=True)
class Margin:
    """Where inserted lines start: the full indentation of their block and what a block inside it adds."""

    indent: str
    step: str

    def fits(self, text: str) -> bool:
        """Whether every line of ``text`` stays within black's width at this margin."""
        return all(len((self.indent + line).expandtabs(_TAB)) <= _WIDTH for line in text.split("\n"))

    def inner(self) -> Margin:
        """The margin of a block inside."""
        return Margin(self.indent + self.step, self.step)


@dataclass(frozen=True, slots=True)
class Membership:
    """The test ``stored in (…)`` or ``stored not in (…)``, after an optional other test."""

    stored: str
    members: tuple[str, ...]
    inside: bool
    also: str = ""

    def operator(self) -> str:
        """The comparison; one member needs no tuple."""
        if len(self.members) != 1:
            return "in" if self.inside else "not in"
        if self.members[0] == "None":
            return "is" if self.inside else "is not"
        return "==" if self.inside else "!="

    def right(self) -> str:
        """The right-hand side, on one line."""
        return self.members[0] if len(self.members) == 1 else f"({', '.join(self.members)})"


def guard(test: Membership, body: Sequence[str], margin: Margin, comment: str | None = None) -> Statement:
    """An ``if`` statement over ``test`` with the statements of ``body``.

    Raises:
        ValueError: a text is not the expression or statement that it should be.
    """
    lines = [_header(test, margin)]
    for statement in body:
        lines.extend(margin.step + line for line in _call(statement, margin.inner()).split("\n"))
    code = "\n".join(lines) + "\n"
    try:
        ast.parse(code)
        module = cst.parse_module(code)
    except (SyntaxError, cst.ParserSyntaxError) as error:
        raise ValueError(f"the plan's text is no Python: {error}") from error
    if len(module.body) != 1 or not isinstance(statement_node := module.body[0], cst.If):
        raise ValueError("the plan's text is more than the parts of one guard")
    # An indentation that is the module's default goes unsaid in a tree, and the other module has its own default.
    block = statement_node.body.with_changes(indent=margin.step)
    above = [] if comment is None else [cst.EmptyLine(comment=cst.Comment(comment))]
    return statement_node.with_changes(body=block, leading_lines=above)


def _header(test: Membership, margin: Margin) -> str:
    flat = f"if {_flat(test)}:"
    if margin.fits(flat):
        return flat
    for wrapped in _wrapped(test, margin):
        if margin.fits(wrapped):
            return wrapped
    return _in_parentheses(test, margin)


def _flat(test: Membership) -> str:
    also = f"{test.also} and " if test.also else ""
    return f"{also}{test.stored} {test.operator()} {test.right()}"


def _wrapped(test: Membership, margin: Margin) -> Iterator[str]:
    """The layouts in black's order: break inside the tuple, inside the call before it, inside both."""
    also = f"{test.also} and " if test.also else ""
    operator, step = test.operator(), margin.step
    exploded = "".join(f"{step}{member},\n" for member in test.members)
    several = len(test.members) > 1
    if several:
        yield f"if {also}{test.stored} {operator} (\n{exploded}):"
    call = _call_parts(test.stored)
    if call is None or not several:
        return
    head, arguments = call
    opened = f"if {also}{head}(\n{step}{', '.join(arguments)}\n) {operator} "
    if not also:
        yield f"{opened}{test.right()}:"
    yield f"{opened}(\n{exploded}):"


def _in_parentheses(test: Membership, margin: Margin) -> str:
    """The layout of last resort: each operand of the test on lines of its own."""
    inner = margin.inner()
    if test.also:
        operands = [test.also, f"and {test.stored} {test.operator()} {test.right()}"]
    else:
        right = f"{test.operator()} {test.right()}"
        if len(test.members) > 1 and not inner.fits(right):
            exploded = "".join(f"{margin.step}{member},\n" for member in test.members)
            right = f"{test.operator()} (\n{exploded})"
        operands = [_call(test.stored, inner), right]
    body = [margin.step + line for operand in operands for line in operand.split("\n")]
    return "\n".join(["if (", *body, "):"])


def _call(statement: str, margin: Margin) -> str:
    """A statement, with the arguments of a call that is too long on lines of their own."""
    parts = None if margin.fits(statement) else _call_parts(statement)
    if parts is None:
        return statement
    head, arguments = parts
    together = f"{head}(\n{margin.step}{', '.join(arguments)}\n)"
    if len(arguments) < 2 or margin.fits(together):
        return together
    return f"{head}(\n" + "".join(f"{margin.step}{argument},\n" for argument in arguments) + ")"


def _call_parts(text: str) -> tuple[str, list[str]] | None:
    """What a call on one line is made of: the text before its parenthesis and its arguments' texts."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call) or "\n" in text or not (call.args or call.keywords):
        return None
    places = [*call.args, *call.keywords]
    head = ast.get_source_segment(text, call.func) or ""
    return head, [ast.get_source_segment(text, place) or "" for place in places]
