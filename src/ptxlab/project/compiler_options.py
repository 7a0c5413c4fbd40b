"""Options of nvcc that a project may set: it may be a stranger's, so none that runs a program or writes a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

# The options that a project may set: nvcc has others that name programs to run and files to write.
_ALLOWED = re.compile(
    r"-[DUI].+|-O[0-3]|-[wG]|-(isystem|include).+|"
    r"--?(include-path|system-include|pre-include|define-macro|undefine-macro)=.+|"
    r"--?(std|ftz|fmad|prec-div|prec-sqrt|maxrregcount|diag-suppress|diag-warn|diag-error)=[\w+,]+|"
    r"--?(use_fast_math|lineinfo|generate-line-info|device-debug|restrict|(expt-)?extended-lambda|"
    r"expt-relaxed-constexpr|default-device|disable-warnings)"
)
_TAKES_VALUE = re.compile(
    r"-[DUI]|-isystem|-include|--?(include-path|system-include|pre-include|define-macro|undefine-macro)"
)
_FOLDERS = ("-I", "--include-path", "-isystem", "--system-include", "-include", "--pre-include")


def unsafe_option(options: Sequence[str]) -> str | None:
    """The first option that a project of someone else must not set."""
    from ptxlab.toolchain.nvcc import SHELL_CHARACTERS

    takes_value = False
    for option in options:
        is_known = takes_value if option[:1] not in ("-", "@") else bool(_ALLOWED.fullmatch(option))
        takes_value = not takes_value and bool(_TAKES_VALUE.fullmatch(option))
        if SHELL_CHARACTERS & {*option} or not (is_known or takes_value):
            return option
    return options[-1] if takes_value else None


def rooted(options: Sequence[str], folder: Path) -> list[str]:
    """The options with folders of headers relative to the project, not to where the command runs."""
    found = []
    for at, option in enumerate(options):
        flag = next((flag for flag in _FOLDERS if option.startswith(flag) and option != flag), None)
        if flag is not None:
            given = option[len(flag) :].removeprefix("=")
            found.append(f"{flag}{'=' if flag.startswith('--') else ''}{folder / given}")
        elif at and options[at - 1] in _FOLDERS:
            found.append(str(folder / option))
        else:
            found.append(option)
    return found
