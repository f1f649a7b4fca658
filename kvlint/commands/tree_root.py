"""The tree that a command is about whose backend is run."""

from __future__ import annotations

import os

import click


def tree_root(root: str | None, installed: str | None) -> str:
    """The tree that ROOT and --installed name, the current folder if neither does.

    Raises:
        click.UsageError: Both do.
    """
    if installed is None:
        return os.curdir if root is None else root
    if root is not None:
        raise click.UsageError("ROOT and --installed name a tree each: give one of them")
    from kvlint.commands.installed import folder_of

    return folder_of(installed, os.path.join("srt", "disaggregation", "nixl", "conn.py"))
