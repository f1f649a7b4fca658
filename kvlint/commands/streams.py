"""Where output goes: findings to standard output or a file, everything else to standard error."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from kvlint.report.colour import wants_colour
from kvlint.source.display import printable

if TYPE_CHECKING:
    from kvlint.diagnostics import Finding

#: Seconds before a terminal is told how far the work is.
PATIENCE = 1.0


def say(message: str) -> None:
    """Print a line to standard error."""
    click.echo(printable(message), err=True)


def warn(messages: Iterable[str]) -> None:
    """Print warnings to standard error."""
    for message in messages:
        say(f"warning: {message}")


def emit(text: str | bytes, output: str | None = None) -> None:
    """Write a whole report to standard output, or to the file ``output``, as UTF-8."""
    data = text if isinstance(text, bytes) else printable(text).encode()
    if output is None:
        stream = sys.stdout.buffer
        stream.write(data)
        stream.flush()
        return
    try:
        write_file(output, data)
    except OSError as error:
        raise click.UsageError(f"--output {output}: cannot be written: {error.strerror or error}") from error


def colour_for(output: str | None) -> bool:
    """Whether a report that goes to ``output`` gets colour."""
    return output is None and wants_colour(sys.stdout, os.environ)


def count_by_rule(findings: Iterable[Finding]) -> str:
    """How often each rule reports, the busiest first."""
    counts = Counter((finding.code, finding.name) for finding in findings)
    return "".join(
        f"{count:6}  {code}  {name}\n"
        for (code, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


class Progress:
    """A line on the terminal that says how far the work is, once it has taken a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` files are analysed."""
        if sys.stderr.isatty() and self._clock() - self._start >= PATIENCE:
            self._is_shown = True
            click.echo(f"\r{done} of {total} files analysed", err=True, nl=False)

    def close(self) -> None:
        """Take the line back."""
        if self._is_shown:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._is_shown = False


def write_file(output: str, data: bytes) -> None:
    """Replace the file ``output``, or what a link of that name leads to, as a whole; raises OSError."""
    if os.path.exists(output) and not stat.S_ISREG(os.stat(output).st_mode):
        # A device or a pipe has no content to protect.
        with open(output, "wb") as stream:
            stream.write(data)
        return
    import tempfile

    target = os.path.realpath(output)
    descriptor, temporary = tempfile.mkstemp(prefix=".kvlint-", dir=os.path.dirname(target))
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(target: str) -> int:
    """The mode of the file that is replaced, or what a new file would get."""
    if os.path.exists(target):
        return stat.S_IMODE(os.stat(target).st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
