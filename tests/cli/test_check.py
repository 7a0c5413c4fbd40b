"""`ptxlab check` from files to exit status."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxlab.cli.group import ptxlab
from ptxlab.toolchain import compilation

RIGHT = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry nothing()
{
    ret;
}
"""
WRONG = RIGHT.replace("ret;", "retrun;")


def run(*arguments: object, input: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(ptxlab, [str(argument) for argument in arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def right(tmp_path: Path) -> Path:
    file = tmp_path / "right.ptx"
    file.write_text(RIGHT)
    return file


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    file = tmp_path / "wrong.ptx"
    file.write_text(WRONG)
    return file


def test_a_right_file(right: Path) -> None:
    result = run("check", right)
    assert (result.exit_code, result.stdout) == (0, f"no errors or warnings in {right}\n")


PYTHON = """\
from ptxlab.author import f32, kernel, pointer, ptx, u32
print("executed")

@kernel(target="sm_80")
def wrong(x: pointer[f32], n: u32):
    i = ptx.tid.x
    with ptx.when(i < n):
        ptx.bar.sync(0)
    ptx.bar.sync(0)
    x[i] = 1.0

same = wrong

@kernel(target="sm_80")
def mistyped(x: pointer[f32]):
    x[0] = ptx.tid.x ^ x[1]

@kernel(target="sm_80")
def needs_an_argument(x: pointer[f32], *, at: int):
    x[at] = 1.0
"""


def test_kernels_in_python(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(PYTHON)
    result = run("check", file, "--format", "concise")
    places = [line.partition(": ")[2].partition("]")[0] for line in result.stdout.splitlines()]
    assert (result.exit_code, places) == (1, ["warning[divergent-barrier", "error[type-clash"])
    assert [int(line.split(":")[1]) for line in result.stdout.splitlines()] == [8, 16]
    assert "executed" in result.stderr
    assert ".entry wrong" in run("ptx", file, "--entry", "wrong").stdout  # whatever is wrong with others
    assert "can't be used with CUDA C++ and Python" in run("check", "--fix", file).stderr
    file.write_text(PYTHON.replace("i < n", "i < m"))
    result = run("check", file)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2, f"Error: `{file}`, line 7: NameError: name 'm' is not defined",
    )  # fmt: skip
    file.write_text(PYTHON.replace("i < n", "n < 4").replace("ptx.tid.x ^ x[1]", "x[1]"))
    assert run("check", file).exit_code == 0
    file.write_text("kernel = 1\n")  # nothing was checked, which is not the same as nothing found
    result = run("check", file)
    assert (result.exit_code, "has no kernel" in result.stderr) == (2, True)


def test_a_wrong_file_full(wrong: Path) -> None:
    result = run("check", wrong)
    code = result.stdout.partition("]")[0].removeprefix("error[")
    assert result.exit_code == (2 if code in ("binary-file", "utf16-file") else 1)
    assert result.stdout.startswith("error[")
    assert f" --> {wrong}:7:5\n" in result.stdout
    assert "7 |     retrun;\n" in result.stdout
    assert result.stdout.endswith(f"\n\n1 error in {wrong}\n")
    assert "\x1b" not in result.stdout


def test_a_wrong_file_concise(wrong: Path) -> None:
    result = run("check", "--format", "concise", wrong)
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"{wrong}:7:5: error[")


def test_a_wrong_file_json(wrong: Path) -> None:
    result = run("check", "--format", "json", wrong)
    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)
    assert (found["level"], found["file"], found["line"], found["column"]) == ("error", str(wrong), 7, 5)


def test_nothing_found_is_an_empty_list_in_json(right: Path) -> None:
    result = run("check", "--format", "json", right)
    assert (result.exit_code, result.stdout) == (0, "[]\n")


def test_standard_input() -> None:
    result = run("check", "-", input=RIGHT)
    assert (result.exit_code, result.stdout) == (0, "no errors or warnings in <stdin>\n")
    result = run("check", "--format", "concise", "-", input=WRONG)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:7:5: error[")


def test_a_directory_is_searched(tmp_path: Path, right: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "wrong.ptx").write_text(WRONG)
    (tmp_path / "deep" / "other.txt").write_text("not PTX")
    result = run("check", tmp_path)
    assert result.exit_code == 1
    assert result.stdout.endswith("\n\n1 error in 2 files\n")


def test_a_file_given_twice_is_checked_once(tmp_path: Path, wrong: Path) -> None:
    result = run("check", "--format", "concise", wrong, tmp_path, wrong)
    assert len(result.stdout.splitlines()) == 1


def test_a_directory_without_ptx_is_a_usage_error(tmp_path: Path) -> None:
    result = run("check", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no `.ptx` file in" in result.stderr


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    result = run("check", tmp_path / "missing.ptx")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "missing.ptx" in result.stderr


def test_no_file_is_a_usage_error() -> None:
    assert run("check").exit_code == 2


def test_an_unknown_target_is_a_usage_error(right: Path) -> None:
    result = run("check", "--target", "sm_90q", right)
    assert result.exit_code == 2
    assert "there is no target `sm_90q`; did you mean `sm_90" in result.stderr


def test_the_target_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "late.ptx"
    file.write_text(RIGHT.replace("ret;", "cp.async.bulk.commit_group;\n    ret;"))
    assert run("check", file).exit_code == 1
    assert run("check", "--target", "sm_90", file).exit_code == 0


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(bytes(range(256)) * 8, id="binary"),
        pytest.param(b"\x7fELF" + bytes(500), id="cubin"),
        pytest.param(RIGHT.encode("utf-16"), id="utf-16"),
        pytest.param(b".version 8.0 // caf\xe9\n", id="latin-1"),
        pytest.param(b".version 8.0\n.target sm_80 /* open", id="comment"),
        pytest.param(b'.version 8.0\n.target sm_80\n.file 1 "open', id="string"),
        pytest.param(RIGHT.replace("ret;", "{" * 10_000).encode(), id="braces"),
    ],
)
@pytest.mark.parametrize("door", ["file", "stdin"])
def test_bad_input_is_a_diagnostic(tmp_path: Path, content: bytes, door: str) -> None:
    file = tmp_path / "bad.ptx"
    file.write_bytes(content)
    result = run("check", "-", input=content) if door == "stdin" else run("check", file)
    code = result.stdout.partition("]")[0].removeprefix("error[")
    assert result.exit_code == (2 if code in ("binary-file", "utf16-file") else 1)
    assert result.stdout.startswith("error[")


def test_fix_refuses_standard_input() -> None:
    result = run("check", "--fix", "-", input=RIGHT)
    assert result.exit_code == 2
    assert "standard input" in result.stderr


def test_fix_applies_what_is_certain_and_reports_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "typo.ptx"
    file.write_text(RIGHT.replace("    ret;", "    bar.sync 0\n    retrun;"))
    result = run("check", "--fix", "--format", "concise", file)
    assert (result.exit_code, result.stderr) == (1, "applied 1 fix\n")
    assert file.read_text() == RIGHT.replace("    ret;", "    bar.sync 0;\n    retrun;")
    assert result.stdout.startswith(f"{file}:8:5: error[")


def test_fix_removes_a_byte_order_mark_and_then_repairs_what_it_hid(tmp_path: Path) -> None:
    file = tmp_path / "mark.ptx"
    file.write_text("\ufeff" + RIGHT.replace("    ret;", "    bar.sync 0\n    ret;"), encoding="utf-8")
    result = run("check", "--fix", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("applied 2 fixes\n")
    assert file.read_text() == RIGHT.replace("    ret;", "    bar.sync 0;\n    ret;")
    file.write_text(f"// \ufeff\n{RIGHT}", encoding="utf-8")
    assert run("check", "--fix", file).exit_code == 1
    assert file.read_text(encoding="utf-8") == f"// \ufeff\n{RIGHT}"


def test_fix_leaves_other_encodings_alone(tmp_path: Path) -> None:
    file = tmp_path / "latin.ptx"
    file.write_bytes(RIGHT.replace("ret;", "ret // caf\xe9\n").encode("latin-1"))
    before = file.read_bytes()
    run("check", "--fix", file)
    assert file.read_bytes() == before


def test_fix_leaves_a_file_alone_that_has_no_safe_fix(wrong: Path) -> None:
    before = wrong.read_bytes()
    result = run("check", "--fix", wrong)
    assert result.exit_code == 1
    assert result.stdout.startswith("applied no fixes\n")
    assert wrong.read_bytes() == before


def test_a_missing_compiler_is_not_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_NVRTC", "no-such-library")
    monkeypatch.setattr(compilation, "has_host_compiler", lambda options: False)
    file = tmp_path / "k.cu"
    file.write_text('extern "C" __global__ void k() {}\n')
    result = run("check", file)
    assert result.exit_code == 2
    assert "error[missing-tool]" in result.stdout
    (tmp_path / "wrong.ptx").write_text(RIGHT.replace("ret;", "retrun;"))
    assert run("check", file, tmp_path / "wrong.ptx").exit_code == 1


TYPOS = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<5>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [x];
    ld.golbal.f32 %f1, [%rd1];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 7;
    ad.f32 %f2, %f1, %f9;
    @%p1 bar.sync 0;
    add.f32 %f2, %f2, %f3;
    st.global.f32 [%rd1], %f2;
    ret;
}
"""
NAMES_AND_FLOW = [
    "11:7: error[illegal-modifier]",
    "14:5: error[unknown-instruction]",
    "14:22: error[unknown-name]: `%f9` is not declared",
    "15:5: warning[divergent-barrier]",
    "16:23: warning[unwritten-register]: `%f3` is read before it is written",
]
# What is there, what it is replaced by, and all that is found then.
MORE_TYPOS = [
    ("", "", NAMES_AND_FLOW),
    # Where a branch goes is not known, but what nothing writes is.
    (
        "    ret;",
        "    @%p1 bra DNOE;\nDONE:\n    ret;",
        [*NAMES_AND_FLOW[:3], NAMES_AND_FLOW[4], "18:14: error[unknown-name]"],
    ),
    # What may be a branch hides the flow, and a label is not an unknown name.
    (
        "    ret;",
        "    brra DONE;\nDONE:\n    ret;",
        [*NAMES_AND_FLOW[:3], NAMES_AND_FLOW[4], "18:5: error[unknown-instruction]"],
    ),
    # `%f3` may be what the misspelt result was to be.
    (
        "ad.f32 %f2, %f1, %f9",
        "add.f32 %f33, %f1, %f1",
        [NAMES_AND_FLOW[0], "14:13: error[unknown-name]: `%f33`", NAMES_AND_FLOW[3]],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), MORE_TYPOS)
def test_all_that_is_wrong_is_reported_at_once(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    file = tmp_path / "typos.ptx"
    file.write_text(TYPOS.replace(old, new) if old else TYPOS)
    found = run("check", file, "--format", "concise").stdout.splitlines()
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(f"{file}:{start}")


def test_a_count_that_ptxas_accepts_says_whose_rule_it_is(tmp_path: Path) -> None:
    file = tmp_path / "count.ptx"
    file.write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 8 .b64 s;\n"
        ".entry k() { mbarrier.init.shared::cta.b64 [s], 1048576; ret; }\n"
    )
    assert "= note: ptxas accepts it; the manual gives this range" in run("check", file).stdout
