"""``kvlint audit``: which released packages are affected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kvlint.commands.progress import Bar
from kvlint.commands.streams import colour_for, emit, say, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvlint.bundle.audit import Installed
    from kvlint.bundle.requirements import Wanted
    from kvlint.report.audit_model import Audit, Failure


@click.command(short_help="Report which released packages are affected.")
@click.argument("requirements", nargs=-1, metavar="[REQ]...")
@click.option("--installed", multiple=True, metavar="NAME", help="Audit an installed distribution; it is not imported.")
@click.option(
    "--look-ahead/--no-look-ahead",
    default=True,
    help="Look at later releases than those asked for, to say which one fixed it.  [default: look ahead]",
)
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "markdown")),
    default="text",
    help="How the table is written.  [default: text]",
)
@click.option("--output", type=click.Path(), metavar="FILE", help="Write the table to FILE.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="Judge at most N releases at a time.")
@click.option("-q", "--quiet", is_flag=True, help="Print the table only.")
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    *,
    requirements: tuple[str, ...],
    installed: tuple[str, ...],
    look_ahead: bool,
    output_format: str,
    output: str | None,
    jobs: int | None,
    quiet: bool,
) -> None:
    """Download released packages with pip, read their sources and say which hazards they have.

    A REQ is `sglang==0.5.14`, a range such as `sglang>=0.5.10,<0.5.17`, or a
    name for its newest release.  Nothing is installed, built or run.

    Exits with 0 if no release is affected, 1 if one is, 2 if the command failed or a release could not be audited.
    """
    if not requirements and not installed:
        raise click.UsageError("name a release (`kvlint audit sglang==0.5.14`) or give --installed NAME")
    from kvlint.report.audit_model import Audit

    wanted, failures = _parsed(requirements)
    present, missing = _present(installed)
    done = _run(wanted, present, jobs, look_ahead, quiet)
    result = Audit(done.releases, (*failures, *missing, *done.failures), done.notes)
    emit(_rendered(result, output_format, output), output)
    if not quiet:
        warn(result.notes)
        warn(text for release in result.releases for text in release.incomplete)
    for failure in result.failures:
        say(f"error: {failure.message}")
    if result.failures:
        ctx.exit(2)
    ctx.exit(1 if any(release.affected for release in result.releases) else 0)


def _parsed(requirements: Sequence[str]) -> tuple[list[Wanted], list[Failure]]:
    from kvlint.bundle import BundleError
    from kvlint.bundle.requirements import parse
    from kvlint.report.audit_model import Failure

    wanted, failures = [], []
    for text in requirements:
        try:
            wanted.append(parse(text))
        except BundleError as error:
            failures.append(Failure(text, str(error)))
    return wanted, failures


def _present(names: Sequence[str]) -> tuple[list[Installed], list[Failure]]:
    from importlib import metadata

    from packaging.utils import canonicalize_name

    from kvlint.bundle.audit import Installed
    from kvlint.commands.installed import files_of
    from kvlint.config import default_config
    from kvlint.report.audit_model import Failure
    from kvlint.source.discovery import PathError

    present, failures = [], []
    for name in names:
        try:
            files = tuple(files_of(name, default_config()))
            present.append(Installed(canonicalize_name(name), metadata.version(name), files))
        except PathError as error:
            failures.append(Failure(f"--installed {name}", str(error)))
    return present, failures


def _run(
    wanted: Sequence[Wanted], installed: Sequence[Installed], jobs: int | None, look_ahead: bool, quiet: bool
) -> Audit:
    from kvlint.bundle.audit import Run
    from kvlint.bundle.fetch import configured_releases
    from kvlint.bundle.manifest import affected_releases

    if not wanted and not installed:
        from kvlint.report.audit_model import Audit

        return Audit(())
    with Bar("releases audited", quiet=quiet) as progress:
        run = Run(
            configured_releases(), jobs=jobs, look_ahead=look_ahead, known=affected_releases, progress=progress.update
        )
        return run(wanted, installed)


def _rendered(result: Audit, output_format: str, output: str | None) -> str:
    match output_format:
        case "json":
            from kvlint.report import audit_json

            return audit_json.render(result)
        case "markdown":
            from kvlint.report import audit_markdown

            return audit_markdown.render(result)
        case _:
            from kvlint.report import audit_text

            return audit_text.render(result, colour=colour_for(output), width=_width(output))


def _width(output: str | None) -> int | None:
    """The columns of the terminal that the table goes to, None where it goes elsewhere."""
    import shutil
    import sys

    return shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else None
