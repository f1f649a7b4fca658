"""Runs of ``kvlint inspect`` for tests, and the parts of what it prints."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
from click.testing import CliRunner, Result

from kvlint.cli import cli
from kvlint.report.inspect_json import schema

STATUSES = """\
class Poll:
    Failed = 0
    Waiting = 1
    Done = 2
"""


def inspect(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["inspect", "--isolated", *arguments], catch_exceptions=False)


def text_of(*arguments: str) -> str:
    result = inspect(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def document_of(*arguments: str) -> Any:
    document = json.loads(text_of("--output-format", "json", *arguments))
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    return document


def line_of(path: Path, fragment: str) -> int:
    (number,) = [number for number, line in enumerate(path.read_text().splitlines(), 1) if fragment in line]
    return number


def section(text: str, title: str) -> list[str]:
    """The lines below a title, without their indentation and with single spaces."""
    block = text.split(f"\n  {title}", 1)[1].split("\n\n", 1)[0]
    return [re.sub(" +", " ", line.strip()) for line in block.splitlines()[1:]]


def write(path: Path, source: str) -> Path:
    path.write_text(textwrap.dedent(source))
    return path
