"""Skip-guard: before an exit, at the end of a block that falls through, and in an `else` made for it."""

from __future__ import annotations

import re

import pytest

from kvlint.diagnostics import SkipGuard
from kvlint.fixing.edits import apply_plan
from kvlint.fixing.refusals import EditRefused

from .plans import PATH, edited, place, skip, text

GUARD = """\
if self.status.get(room) not in (None, Poll.Failed, Poll.Success):
    self.record(room, "gone")
    self.update(room, Poll.Failed)
"""

# The mark @ stands before the statement that the plan names.
EXITS = {
    "continue": (
        """
        while True:
            room = take()
            if room not in infos:
                @continue
            send(room)
        """,
        """
        while True:
            room = take()
            if room not in infos:
                GUARD
                continue
            send(room)
        """,
    ),
    "comments stay with their statements": (
        """
        def work(self):
            for room in rooms:
                if room not in infos:
                    log(room)

                    # stale
                    @return  # for now
        """,
        """
        def work(self):
            for room in rooms:
                if room not in infos:
                    log(room)
                    GUARD

                    # stale
                    return  # for now
        """,
    ),
    "one-line if": (
        """
        for room in rooms:
            if room not in infos: @continue  # stale
            send(room)
        """,
        """
        for room in rooms:
            if room not in infos:
                GUARD
                continue  # stale
            send(room)
        """,
    ),
    "behind other statements of its line": (
        """
        for room in rooms:
          if room not in infos:
             log(room); @break; # stale
        """,
        """
        for room in rooms:
          if room not in infos:
             log(room)
             GUARD3
             break; # stale
        """,
    ),
    "behind other statements of a one-line if": (
        """
        for room in rooms:
            if room not in infos: log(room); @break
        """,
        """
        for room in rooms:
            if room not in infos:
                log(room)
                GUARD
                break
        """,
    ),
    "one-line else, except and case": (
        """
        def work(self):
            match room:
                case None:
                    try:
                        send()
                    except KeyError: @return
        """,
        """
        def work(self):
            match room:
                case None:
                    try:
                        send()
                    except KeyError:
                        GUARD
                        return
        """,
    ),
    "header split by a backslash": (
        """
        def work(self):
            if room not in infos: \\
                @return
        """,
        """
        def work(self):
            if room not in infos:
                GUARD
                return
        """,
    ),
}

BODIES = {
    "body of a test for absence": (
        """
        def work(self):
            @if room not in infos or done:
                log(room)
            else:
                send(room)
        """,
        """
        def work(self):
            if room not in infos or done:
                log(room)
                GUARD
            else:
                send(room)
        """,
    ),
    "body of an elif": (
        """
        def work(self):
            if dummy:
                log(room)
            @elif room not in infos:
                # nobody
                log(room)

            send(room)
        """,
        """
        def work(self):
            if dummy:
                log(room)
            elif room not in infos:
                # nobody
                log(room)
                GUARD

            send(room)
        """,
    ),
    "one-line body": (
        """
        def work(self):
            @if room not in infos: log(room)
            else: send(room)
        """,
        """
        def work(self):
            if room not in infos:
                log(room)
                GUARD
            else: send(room)
        """,
    ),
    "handler": (
        """
        def work(self):
            try:
                send(infos[room])
            @except KeyError:
                log(room)
            finally:
                done()
        """,
        """
        def work(self):
            try:
                send(infos[room])
            except KeyError:
                log(room)
                GUARD
            finally:
                done()
        """,
    ),
    "one-line handler": (
        """
        def work(self):
          try: send(infos[room])
          @except* KeyError: pass
        """,
        """
        def work(self):
          try: send(infos[room])
          except* KeyError:
            pass
            GUARD2
        """,
    ),
}

ELSES = {
    "else of a test for presence": (
        """
        def work(self):
            @if not infos.get(room) is None:
                send(room)
            else:
                # nobody
                log(room)
        """,
        """
        def work(self):
            if not infos.get(room) is None:
                send(room)
            else:
                # nobody
                log(room)
                GUARD
        """,
    ),
    "absent else": (
        """
        def work(self):
            for room in rooms:
                @if room in infos and fresh:
                    send(room)
                    # sent
                # next
            return
        """,
        """
        def work(self):
            for room in rooms:
                if room in infos and fresh:
                    send(room)
                    # sent
                else:
                    GUARD
                # next
            return
        """,
    ),
    "absent else of a chain": (
        """
        def work(self):
            @if room in infos: send(room)
            elif room in others: log(room)
        """,
        """
        def work(self):
            if room in infos: send(room)
            elif room in others: log(room)
            else:
                GUARD
        """,
    ),
    "elif": (
        """
        def work(self):
            if dummy:
                log(room)
            @elif infos.get(room):
                send(room)
        """,
        """
        def work(self):
            if dummy:
                log(room)
            elif infos.get(room):
                send(room)
            else:
                GUARD
        """,
    ),
}


def _expanded(source: str) -> str:
    """``source`` with the guard for its stand-in; a digit behind that is the guard's own indentation step."""

    def inserted(match: re.Match[str]) -> str:
        step = " " * int(match[2] or 4)
        return "".join(match[1] + line.replace("    ", step) for line in GUARD.splitlines(keepends=True))

    return re.sub(r"^( *)GUARD(\d?)\n", inserted, source, flags=re.MULTILINE)


def _check(before: str, after: str, *, end: bool, in_body: bool = True) -> None:
    marked = text(before)
    line, column = place(marked, "@")
    plan = skip(line, column, end=end, in_body=in_body)
    assert edited(marked.replace("@", ""), plan) == _expanded(text(after))


@pytest.mark.parametrize("name", EXITS)
def test_before_an_exit(name: str) -> None:
    _check(*EXITS[name], end=False)


@pytest.mark.parametrize("name", BODIES)
def test_at_the_end_of_a_body(name: str) -> None:
    _check(*BODIES[name], end=True)


@pytest.mark.parametrize("name", ELSES)
def test_at_the_end_of_an_else(name: str) -> None:
    _check(*ELSES[name], end=True, in_body=False)


def test_the_plan_says_which_block_falls_through() -> None:
    source = "def work(self):\n    if room in infos:\n        send()\n    else:\n        log()\n"
    body, other = (edited(source, skip(2, 5, end=True, in_body=in_body)) for in_body in (True, False))
    indented = "".join(f"        {line}\n" for line in GUARD.splitlines())
    assert body == source.replace("        send()\n", "        send()\n" + indented)
    assert other == source + indented


def test_outside_every_function() -> None:
    # Not a program, but a text that parses: the exit of a cell or a template.
    assert edited("return\n", skip(1, 1)) == GUARD + "return\n"


def test_class_without_a_recorder() -> None:
    after = edited("def f(self):\n    return\n", skip(2, 5, record=None))
    assert (
        after
        == "def f(self):\n"
        + "".join(f"    {line}\n" for line in GUARD.splitlines() if "record" not in line)
        + "    return\n"
    )


@pytest.mark.parametrize(
    ("source", "plan", "reason"),
    [
        ("def f():\n    x = 1\n", skip(2, 5), "no continue, return or break"),
        ("def f():\n    return\n", skip(2, 6), "no statement starts"),
        ("def f():\n    return\n", skip(9, 1), "no statement stands"),
        ("def f():\n    while x: y\n", skip(2, 5, end=True), "no if or except"),
        ("def f():\n    if not x:\n        return\n", skip(2, 5, end=True), "does not fall through"),
        ("def f():\n    if x: y\n    else:\n        raise E\n", skip(2, 5, end=True, in_body=False), "does not fall"),
    ],
)
def test_text_that_changed_meanwhile_is_refused(source: str, plan: SkipGuard, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason):
        apply_plan(PATH, source.encode(), plan)


def test_exit_that_is_guarded_is_refused_where_it_stands_now() -> None:
    source = b"def f(self):\n    return\n"
    once = apply_plan(PATH, source, skip(2, 5))
    with pytest.raises(EditRefused, match="there already"):
        apply_plan(PATH, once, skip(once.count(b"\n"), 5))
