"""Which findings a command reports, and which make it fail: options and `[tool.ptxlab]`."""

import json
from pathlib import Path

import pytest
from tests.cli.test_check import run
from tests.tools import header

# Three warnings: a barrier under a condition, a register that nothing writes, code that no path leads to.
KERNEL = (
    header("8.0", "sm_80")
    + """\
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bar.sync 0;
    st.global.u32 [%rd1], %r3;
    ret;
    mov.u32 %r2, 1;
}
"""
)
ALL = ["divergent-barrier", "unwritten-register", "unreachable-code"]


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    file = tmp_path / "kernels" / "k.ptx"
    file.parent.mkdir()
    file.write_text(KERNEL)
    return file


def configure(kernel: Path, text: str) -> None:
    (kernel.parents[1] / "pyproject.toml").write_text(f"[tool.ptxlab]\n{text}\n")


def codes(*arguments: object, status: int = 1) -> list[str]:
    result = run("check", *arguments, "--format", "json")
    assert result.exit_code == status, result.output
    return [one["code"] for one in json.loads(result.stdout)]


def test_select_and_ignore(kernel: Path) -> None:
    assert codes(kernel) == ALL
    assert codes(kernel, "--select", "unwritten-register,unreachable-code") == ALL[1:]
    assert codes(kernel, "--select", "un*", "--ignore", "unreachable-code") == ALL[1:2]
    assert codes(kernel, "--ignore", ALL[0], "--ignore", ALL[1]) == ALL[2:]
    assert codes(kernel, "--ignore", ",".join(ALL), status=0) == []


def test_a_code_that_does_not_exist(kernel: Path) -> None:
    result = run("check", kernel, "--ignore", "unreachable-cod")
    assert result.exit_code == 2
    assert "there is no code `unreachable-cod`; did you mean `unreachable-code`?" in result.stderr


def test_the_configuration_says_the_same(kernel: Path) -> None:
    configure(kernel, 'ignore = ["unreachable-code"]')
    assert codes(kernel) == ALL[:2]
    assert codes(kernel, "--ignore", ALL[0]) == ALL[1:2]  # takes away more
    assert codes(kernel, "--select", "unreachable-code") == ALL[2:]  # starts anew
    configure(kernel, 'select = ["unwritten-register"]')
    assert codes(kernel) == ALL[1:2]


def test_ignored_in_some_files(kernel: Path) -> None:
    (kernel.parent / "other.ptx").write_text(KERNEL)
    configure(kernel, 'per-file-ignores = {"kernels/k.ptx" = ["unwritten-register", "divergent-*"]}')
    assert codes(kernel) == ALL[2:]
    assert codes(kernel, "--select", "*") == ALL[2:]
    assert codes(kernel.parent) == [*ALL[2:], *ALL]


def test_excluded_files(kernel: Path) -> None:
    (kernel.parent / "generated").mkdir()
    other = kernel.parent / "generated" / "x.ptx"
    other.write_text(KERNEL)
    assert len(codes(kernel.parent)) == 6
    configure(kernel, 'exclude = ["generated"]')
    assert codes(kernel.parent) == ALL
    result = run("check", other)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "nothing to check: all files are excluded\n"
    assert run("format", "--check", other).exit_code == 0
    assert run("check", kernel.parent, "--exclude", "*.ptx").exit_code == 0


def test_which_level_fails(kernel: Path) -> None:
    assert codes(kernel, "--fail-on", "error", status=0) == ALL
    assert codes(kernel, "--exit-zero", status=0) == ALL
    configure(kernel, 'fail-on = "error"')
    assert codes(kernel, status=0) == ALL
    assert codes(kernel, "--fail-on", "warning") == ALL
    kernel.write_text(KERNEL.replace("ret;", "retn;"))
    assert "unknown-instruction" in codes(kernel)
    assert "unknown-instruction" in codes(kernel, "--exit-zero", status=0)


def test_what_was_not_checked_fails_whatever_is_asked(kernel: Path) -> None:
    kernel.write_bytes(b"\0" * 64)
    assert codes(kernel, "--exit-zero", "--select", "data-race", status=2) == ["binary-file"]


def test_a_syntax_error_is_shown_whatever_is_selected(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("ret;", "ret"))
    assert codes(kernel, "--select", "data-race") == ["missing-semicolon"]


def test_statistics(kernel: Path) -> None:
    (kernel.parent / "other.ptx").write_text(KERNEL.replace("@%p1 bar", "bar"))
    result = run("check", kernel.parent, "--statistics")
    assert result.exit_code == 1
    assert (
        result.stdout
        == """\
count  level    code
    2  warning  unreachable-code
    2  warning  unwritten-register
    1  warning  divergent-barrier

5 warnings in 2 files
"""
    )
    counted = json.loads(run("check", kernel, "--statistics", "--format", "json").stdout)
    assert counted[0] == {"code": "divergent-barrier", "level": "warning", "count": 1, "fixable": 0}
    assert run("check", kernel, "--statistics", "--format", "sarif").exit_code == 2


def test_a_launch_has_the_same_options(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("    @%p1 bar.sync 0;\n", "").replace("%r3;", "%r1;"))
    launch = ["run", kernel, "--block", "32", "--arg", "u32[1]", "--format", "json"]

    def found(*options: str, status: int) -> set[str]:
        result = run(*launch, *options)
        assert result.exit_code == status, result.output
        return {one["code"] for one in json.loads(result.stdout)["diagnostics"]}

    both = {"data-race", "unreachable-code"}
    assert found(status=1) == both
    assert found("--ignore", "unreachable-code", status=1) == {"data-race"}
    assert found("--exit-zero", status=0) == both
    configure(kernel, 'ignore = ["data-race"]\nfail-on = "error"')
    assert found(status=0) == {"unreachable-code"}
    assert run("run", kernel, "--block", "32").exit_code == 2  # an argument is missing
    assert run("run", kernel, "--block", "32", "--exit-zero").exit_code == 2


def test_a_project_that_is_wrong_is_refused_for_ptx_as_well(kernel: Path) -> None:
    configure(kernel, "ignroe = []")
    for command in (["check", kernel], ["format", kernel], ["run", kernel, "--block", "32", "--arg", "u32[1]"]):
        result = run(*command)
        assert result.exit_code == 2
        assert "there is no key `ignroe`; did you mean `ignore`?" in result.stderr
