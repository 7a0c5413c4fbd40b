"""`ptxlab run` in this process, for its tests."""

from pathlib import Path

from click.testing import CliRunner, Result
from tests.tools import header

from ptxlab.cli.group import ptxlab

HEADER = header("8.0", "sm_80")


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(ptxlab, ["run", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "kernel.ptx"
    file.write_text(text)
    return file
