"""The ``kvlint`` command: its subcommands, and what becomes of errors and Ctrl-C."""

from __future__ import annotations

from typing import Any

import click

from kvlint.commands.audit import audit
from kvlint.commands.cache import cache
from kvlint.commands.check import check
from kvlint.commands.demo import demo
from kvlint.commands.drill import drill
from kvlint.commands.explore import explore
from kvlint.commands.fix import fix
from kvlint.commands.guard import run_guarded
from kvlint.commands.inspect import inspect
from kvlint.commands.patch import patch
from kvlint.commands.rule import rule
from kvlint.version import __version__

#: The exit status of a command that was interrupted, as shells have it: 128 + SIGINT.
INTERRUPTED = 130


class _Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; a mistake of the caller's becomes a usage error, exit status 2."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted; no file is half-written", err=True)
            ctx.exit(INTERRUPTED)
        except click.exceptions.Exit:
            # How a subcommand's help ends, among others.
            raise
        except Exception as error:
            from kvlint.config import KvlintError
            from kvlint.source.display import printable

            if isinstance(error, KvlintError):
                click.echo(f"error: {printable(str(error))}", err=True)
                ctx.exit(2)
            raise


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="kvlint %(version)s")
def cli() -> None:
    """Find and repair failure states that get lost in KV-cache transfer backends."""


for _command in (check, fix, inspect, explore, drill, rule, audit, patch, demo, cache):
    cli.add_command(_command)


def main() -> None:
    """The console script."""
    run_guarded(lambda: cli(prog_name="kvlint"))
