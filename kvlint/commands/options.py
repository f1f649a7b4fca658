"""The options that several commands share, and how they become targets and a configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvlint.report import FORMATS

if TYPE_CHECKING:
    from kvlint.config import Config
    from kvlint.report.model import Detail
    from kvlint.source.discovery import Discovery

Command = TypeVar("Command", bound=Callable[..., Any])

#: The path that stands for standard input.
STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the shared options ask for."""

    paths: tuple[str, ...]
    installed: tuple[str, ...]
    stdin_filename: str | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    config: str | None = None
    isolated: bool = False

    @property
    def reads_stdin(self) -> bool:
        """Whether the source to work on comes from standard input."""
        return self.stdin_filename is not None or self.paths == (STDIN,)

    @property
    def stdin_path(self) -> str:
        """The path to show for standard input."""
        return self.stdin_filename or STDIN


def file_options(command: Command) -> Command:
    """Which files, and which configuration."""
    for option in reversed(
        (
            click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]..."),
            click.option(
                "--installed",
                multiple=True,
                metavar="NAME",
                help="Take the files of an installed distribution; it is not imported.",
            ),
            click.option(
                "--exclude",
                multiple=True,
                metavar="GLOB",
                help="Leave files or folders out, besides those that the configuration leaves out.",
            ),
            click.option("--config", type=click.Path(), metavar="FILE", help="Read this configuration file."),
            click.option("--isolated", is_flag=True, help="Read no configuration file."),
            click.option("-q", "--quiet", is_flag=True, help="Print findings only."),
            click.option("-v", "--verbose", is_flag=True, help="Say what is done and with which settings."),
        )
    ):
        command = option(command)
    return command


def rule_options(command: Command) -> Command:
    """Which rules run, and on what text."""
    for option in reversed(
        (
            click.option("--select", multiple=True, metavar="CODES", help="Run these rules only."),
            click.option("--extend-select", multiple=True, metavar="CODES", help="Run these rules too."),
            click.option("--ignore", multiple=True, metavar="CODES", help="Do not run these rules."),
            click.option(
                "--stdin-filename",
                type=click.Path(),
                metavar="PATH",
                help="Read source from standard input, as the content of PATH.",
            ),
            click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="Use at most N processes."),
            click.option("--exit-zero", is_flag=True, help="Exit with 0 although findings are reported."),
            click.option("--statistics", is_flag=True, help="Count the findings of each rule at the end."),
            click.option("--output", type=click.Path(), metavar="FILE", help="Write the report to FILE."),
        )
    ):
        command = option(command)
    return command


def report_options(command: Command) -> Command:
    """How findings are written."""
    for option in reversed(
        (
            click.option(
                "--output-format",
                type=click.Choice(FORMATS),
                default="text",
                help="How findings are written.  [default: text]",
            ),
            click.option(
                "--include-suppressed",
                is_flag=True,
                help="List findings that noqa comments suppress, too, marked as such (sarif and html only).",
            ),
        )
    ):
        command = option(command)
    return command


def wanted_details(output_format: str, include_suppressed: bool) -> Detail:
    """What has to be looked up for a report; raises UsageError where the format cannot show what is asked for."""
    from kvlint.report import details_of
    from kvlint.report.model import Detail

    details = details_of(output_format)
    if not include_suppressed:
        return details & ~Detail.SUPPRESSED
    if Detail.SUPPRESSED not in details:
        raise click.UsageError(
            f"--include-suppressed has no effect on the format {output_format}: leave it out, or take sarif or html"
        )
    return details


def configuration(selection: Selection) -> Config:
    """The configuration file's settings with the command line's laid over them; raises ConfigError."""
    from kvlint.config import default_config, load_config, read_config
    from kvlint.registry import require_known

    if selection.stdin_filename is not None and set(selection.paths) - {STDIN}:
        raise click.UsageError("--stdin-filename names the file that standard input stands for: leave the PATHs out")
    if selection.config is not None and selection.isolated:
        raise click.UsageError("--config names a configuration file and --isolated reads none: give one of them")
    if selection.isolated:
        config = default_config()
    elif selection.config is not None:
        config = read_config(selection.config)
    else:
        config = load_config(_start(selection))
    for name in ("select", "extend_select", "ignore"):
        require_known(getattr(config, name) or (), f"{config.file}: {name.replace('_', '-')}")
        require_known(_codes(getattr(selection, name)), f"--{name.replace('_', '-')}")
    for glob, codes in config.per_file_ignores.items():
        require_known(codes, f"{config.file}: per-file-ignores of {glob!r}")
    return _overlaid(config, selection)


def discovered(selection: Selection, config: Config) -> Discovery:
    """The files that paths and ``--installed`` stand for; raises PathError."""
    from kvlint.source.discovery import Discovery, discover

    if STDIN in selection.paths:
        raise click.UsageError("`-` stands for standard input and cannot be combined with other paths")
    paths = selection.paths or (() if selection.installed else (os.curdir,))
    found = discover(paths, config)
    if not selection.installed:
        return found
    from kvlint.commands.installed import files_of

    targets = {target.path: target for name in selection.installed for target in files_of(name, config)}
    targets |= {target.path: target for target in found.targets}
    return Discovery(tuple(sorted(targets.values())), found.warnings)


def _start(selection: Selection) -> str:
    if selection.reads_stdin:
        return os.path.dirname(selection.stdin_path) or os.curdir
    return selection.paths[0] if selection.paths else os.curdir


def _overlaid(config: Config, selection: Selection) -> Config:
    from msgspec.structs import replace

    if selection.select:
        # Like ruff: asking for rules by hand leaves what the file selects and ignores behind.
        config = replace(config, select=_codes(selection.select), extend_select=(), ignore=())
    return replace(
        config,
        extend_select=config.extend_select + _codes(selection.extend_select),
        ignore=config.ignore + _codes(selection.ignore),
        exclude=config.exclude + tuple(_from_here(glob, config.folder) for glob in selection.exclude),
    )


def _from_here(glob: str, folder: str) -> str:
    """A glob given relative to the current folder, as it reads from ``folder``."""
    if glob.startswith("./"):
        # As a shell would complete it; in gitignore's language a leading slash says so.
        glob = glob[1:]
    here = os.path.relpath(os.curdir, folder)
    if here == os.curdir or here.startswith(os.pardir) or "/" not in glob.rstrip("/"):
        return glob
    return f"/{here}/{glob.removeprefix('/')}"


def _codes(groups: Sequence[str]) -> tuple[str, ...]:
    """``("kvl001,KVL002", "KVL9")`` as single codes in upper case."""
    return tuple(code.strip().upper() for group in groups for code in group.split(",") if code.strip())
