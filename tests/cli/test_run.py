"""`ptxlab run` from files and arguments to what came out and the exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.cli.running import HEADER, run, write

from ptxlab.cli.arguments import parse_argument
from ptxlab.cli.group import ptxlab
from ptxlab.cli.samples import SAXPY

ARGUMENTS = ["--arg", "f32[1024]=random", "--arg", "f32[1024]=zeros", "--arg", "f32=2.0", "--arg", "u32=1024"]
ONES = ["--block", 1, "--arg", "f32[1]=ones", "--arg", "f32[1]=ones"]
LAUNCH = ["--grid", "4", "--block", "256", *ARGUMENTS]
# Each thread takes the next place; which one gets which depends on the order.
RACE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry race(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    atom.global.add.u32 %r2, [%rd1], 1;
    setp.eq.u32 %p, %r2, 0;
    @!%p bra done;
    setp.eq.u32 %p, %r1, 0;
    @%p bra done;
    trap;
done:
    ret;
}
"""


@pytest.fixture
def saxpy(tmp_path: Path) -> Path:
    file = tmp_path / "saxpy.ptx"
    file.write_text(SAXPY)
    return file


def test_what_changed_and_what_it_took(saxpy: Path) -> None:
    result = run(saxpy, "--entry", "saxpy", "--grid", 2, "--block", "2,1", "--arg", "f32[4]=1,2,3,-4", "--arg",
                 "f32[4]=0.5", "--arg", "2", "--arg", "3")  # fmt: skip
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "y: f32[4], 3 of 4 elements changed"
    assert lines[1] == "    2.5 4.5 6.5 0.5"
    assert lines[2] == "    from 0.5 to 6.5"
    assert lines[3].startswith("`saxpy` ran on 2 blocks of 2 × 1 threads: 62 instructions in ")
    assert lines[4:] == [f"no errors or warnings in {saxpy}"]


def test_that_nothing_changed_is_said(saxpy: Path) -> None:
    result = run(saxpy, "--grid", 1200, "--block", 1, "--arg", "f32[4]=0", "--arg", "f32[4]=0", "--arg", "f32=2",
                 "--arg", "u32=0")  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout.startswith("no array was changed\n`saxpy` ran on 1,200 blocks of 1 thread: ")


def test_random_data_is_the_same_for_the_same_seed(saxpy: Path) -> None:
    first, again, other = (run(saxpy, *LAUNCH, *more).stdout.splitlines()[1] for more in ([], [], ["--seed", 1]))
    assert first == again
    assert first != other


def test_a_finding_is_shown_as_check_does(saxpy: Path) -> None:
    result = run(saxpy, *LAUNCH[:-1], "u32=2000", "--grid", "8")
    assert result.exit_code == 1
    assert "error[out-of-bounds]: read of 4 bytes outside of argument 0 (`x`)" in result.stdout
    assert f" --> {saxpy}:27:5\n" in result.stdout
    assert result.stdout.endswith(f"\n1 error in {saxpy}\n")
    concise = run(saxpy, *LAUNCH[:-1], "u32=2000", "--grid", "8", "--format", "concise")
    assert concise.stdout.count("\n") == 1
    assert concise.stdout.startswith(f"{saxpy}:27:5: error[out-of-bounds]: ")


def test_findings_that_say_the_same_are_shown_three_times_and_then_counted(tmp_path: Path) -> None:
    reads = "\n".join(f"    ld.shared.u32 %r{1 + number}, [word];" for number in range(16))
    reads += "\n    ld.param.u64 %rd1, [out];\n"
    reads += "\n".join(f"    st.global.u32 [%rd1], %r{1 + number};" for number in range(16))
    text = RACE.replace("%r<3>", "%r<20>").replace(".reg .pred %p;", ".reg .pred %p;\n    .shared .b32 word;")
    start, end = text.index("    ld.param"), text.index("    ret;")
    file = write(tmp_path, text[:start] + reads + "\n" + text[end:])
    result = run(file, "--block", 1, "--arg", "u32[1]=zeros")
    assert result.stdout.count("warning[uninitialized-read]: ") == 3
    assert result.stdout.endswith(
        "\n13 more of `uninitialized-read`: a thread reads shared memory that no thread has written\n"
        "  on lines 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, ...; `--format concise` lists them\n"
        f"\n16 warnings in {file}\n"
    )
    concise = run(file, "--block", 1, "--arg", "u32[1]=zeros", "--format", "concise")
    assert concise.stdout.count("\n") == 16


def test_json_has_everything(saxpy: Path) -> None:
    result = run(saxpy, *LAUNCH, "--format", "json")
    found = json.loads(result.stdout)
    (changed,) = found["arguments"]
    assert (changed["name"], changed["shape"], changed["changed"]) == ("y", [1024], 1024)
    assert found["counters"]["by_instruction"]["fma"] == 1024
    assert (found["kernel"], found["seed"], found["diagnostics"]) == ("saxpy", 0, [])


def test_json_has_words_for_what_it_has_no_numbers_for(saxpy: Path) -> None:
    arguments = ["--arg", "f32[2]=inf,nan", "--arg", "f32[2]=0", "--arg", "f32=1", "--arg", "u32=2"]
    result = run(saxpy, "--block", 2, *arguments, "--format", "json")
    (changed,) = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(word))["arguments"]
    assert (changed["first"], changed["nans"]) == (["inf", "nan"], 1)


def test_arrays_come_from_files_and_go_to_files(saxpy: Path, tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "in.npy", x)
    result = run(saxpy, "--block", 6, "--arg", f"f32[]=@{tmp_path / 'in.npy'}", "--arg", "f32[2,3]=ones",
                 "--arg", "f32=3", "--arg", "u32=6", "--save", tmp_path / "out")  # fmt: skip
    assert result.exit_code == 0
    assert np.array_equal(np.load(tmp_path / "out" / "y.npy"), 3 * x + 1)
    assert np.array_equal(np.load(tmp_path / "out" / "x.npy"), x)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u8[3]=arange", np.array([0, 1, 2], np.uint8)),
        ("s16[2]=-1", np.array([-1, -1], np.int16)),
        ("b32[2]=0x10,2", np.array([16, 2], np.uint32)),
        ("f64[2,2]=ones", np.ones((2, 2))),
        ("f16[2,3]", np.zeros((2, 3), np.float16)),
        ("u64[1]=18446744073709551615", np.array([2**64 - 1], np.uint64)),
        ("s32=-2", np.int32(-2).tobytes()),
        ("f16=1.5", np.float16(1.5).tobytes()),
        ("bf16=1.0", b"\x80\x3f"),
        ("e4m3=1.0", b"\x38"),
        ("e5m2=1.0", b"\x3c"),
        ("e4m3=448", b"\x7e"),
        ("f32=-inf", np.float32(-np.inf).tobytes()),
        ("f16=65519", np.float16(65504).tobytes()),
        ("bytes=00ff", b"\x00\xff"),
        ("(1, (2, 0.5))", (1, (2, 0.5))),
        ("(7)", (7,)),
        ("()", ()),
    ],
)
def test_values_of_arguments(text: str, expected: np.ndarray | bytes | tuple) -> None:
    made = parse_argument(text).make((0, 0))
    if isinstance(expected, bytes | tuple):
        assert made == expected
    else:
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        assert np.array_equal(made, expected)


def test_random_integers_stay_within_their_limits() -> None:
    limited = parse_argument("u32[1000]=random:5:9").make((0, 0))
    assert set(limited) == {5, 6, 7, 8}
    whole = parse_argument("s8[10000]=random").make((0, 0))
    assert (whole.min(), whole.max()) == (-128, 127)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--block", 1, "--arg", "f32"], "is not like `2.0`, `f32=2.0`"),
        ([*ONES, "--arg", "2", "--arg", "2.5"], "`2.5`: `2.5` is not an integer\n"),
        (["--block", 1, "--set", "x=2"], "`2` is not like"),
        (["--block", 1, "--arg", "int=3"], "there is no type `int`"),
        (["--block", 1, "--arg", "u64=-1"], "-1 does not fit `u64` (0 to "),
        (["--block", 1, "--arg", "f32[2]=1,2,3"], "3 values for 2 elements"),
        (["--block", 1, "--arg", "f32[x]=1"], "is not a shape"),
        (["--block", 1, "--arg", "f32[]"], "is not a shape"),
        (["--block", 1, "--arg", "f32[999999999999999]=random"], "more than there is memory for"),
        (["--block", 1, "--arg", "f32[999999999,999999999]=zeros"], "is not a shape"),
        (["--block", 1, "--arg", "f32[]=@nowhere.npy"], "`nowhere.npy` can't be read: no such file or directory\n"),
        (["--block", 1, "--arg", "f32=1.0"], "the parameter `x` is `.u64`"),
        ([*ONES, "--arg", "f32=two"], "`f32=two`: `two` is not a number\n"),
        ([*ONES, "--arg", "f32=1e39"], "1e39 does not fit `f32`\n"),
        ([*ONES, "--arg", "f32=1e999"], "1e999 does not fit `f32`\n"),
        (["--block", 1, "--arg", "f16[2]=1,65520"], "65520 does not fit `f16`\n"),
        (["--block", 1, "--arg", "e4m3[2]=480"], "480 does not fit `e4m3`\n"),
        (["--block", 1, "--arg", "e4m3[2]=inf"], "inf does not fit `e4m3`\n"),
        (
            ["--block", 1, "--arg", "f32[2]=randm"],
            "`randm` is not a number, nor zeros, ones, arange, random, random:LOW:",
        ),
        (
            ["--block", 1, "--arg", "u32[2]=one"],
            "`one` is not an integer, nor zeros, ones, arange, random, random:LOW:",
        ),
        (
            ["--block", 1, "--arg", "f32[2]=random:2:1"],
            "the range 2:1 is empty: the first number must be below the second\n",
        ),
        (
            ["--block", 1, "--arg", "u32[2]=random:2:2"],
            "the range 2:2 is empty: the first number must be below the second\n",
        ),
        (
            ["--block", 1, "--arg", "f32[2]=random:nan:1"],
            "the range nan:1 is empty: the first number must be below the second\n",
        ),
        (["--block", 1, "--arg", "f64[2]=random:-1e308:1e308"], "more than a double can hold\n"),
        (["--block", 1, "--arg", f"f32[2]=@{__file__}"], " bytes, f32[2] has 8\n"),
        (["--block", 1, "--arg", "bytes=0g"], "bytes are pairs of hexadecimal digits, such as `01ff`, or @FILE\n"),
        (["--block", 1, "--arg", "bytes=@nowhere"], "`nowhere` can't be read: no such file or directory\n"),
        (["--block", 1, "--blocks", " "], "it names no block; write '0,0 5,3'\n"),
        (
            ["--block", 1, "--no-detectors", "--detector", "data-race"],
            "`--detector` and `--no-detectors` exclude each other\n",
        ),
        (["--block", 1, "--entry", "saxpi"], "there is no kernel `saxpi`; did you mean `saxpy`?\n"),
        ([], "`--block` is required: `"),
        (["--block", "0x"], "is not like 4 or 4,2,1"),
        (["--block", 1, "--entry", "other"], "the kernels are `saxpy`"),
        (["--block", 1, "--device", "cuda", "--profile"], "`--profile` is for the emulator"),
        (["--block", 1, "--seeds", 0], "--seeds"),
        (["--block", 1, "--timeout", "nan"], "Invalid value for '--timeout': nan is not a time\n"),
        (["--block", 1, "--timeout", "-1"], "Invalid value for '--timeout': -1.0 is not in the range x>0.\n"),
    ],
)
def test_usage(saxpy: Path, arguments: list[object], said: str) -> None:
    result = run(saxpy, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_arguments_that_the_kernel_does_not_take(saxpy: Path) -> None:
    result = run(saxpy, "--block", 1, "--arg", "f32[4]=ones")
    assert result.exit_code == 2
    assert "error[bad-argument]: `saxpy` takes 4 arguments, not 1" in result.stdout


def test_wrong_ptx_and_wrong_files(tmp_path: Path) -> None:
    wrong = write(tmp_path, SAXPY.replace("ret;", "ret"))
    result = run(wrong, *LAUNCH)
    assert result.exit_code == 1
    assert "error[missing-semicolon]" in result.stdout
    assert run(tmp_path / "nowhere.ptx").exit_code == 2


def test_several_kernels_need_a_name(tmp_path: Path) -> None:
    two = write(tmp_path, HEADER + ".entry a() { ret; }\n.entry b() { ret; }\n")
    result = run(two, "--block", 1)
    assert result.exit_code == 2
    assert "`--entry` is required: the kernels are `a`, `b`" in result.stderr
    for option in ("--entry", "--kernel"):
        assert run(two, "--block", 1, option, "b").stdout.startswith("`b` ran")


def test_errors_come_before_the_question_which_kernel(tmp_path: Path) -> None:
    two = write(tmp_path, HEADER + ".entry a() { ret; }\n.entry b() { bar.snc 0; ret; }\n")
    result = run(two, "--block", 1)
    assert result.exit_code == 1
    assert "error[illegal-modifier]" in result.stdout


UNWRITTEN = """
.visible .entry k(.param .u64 out) {
    .reg .b64 %rd1;
    .reg .f32 %f1;
    ld.param.u64 %rd1, [out];
    st.global.f32 [%rd1], %f1;
    ret;
}
"""


def test_what_check_warns_of_is_among_the_findings(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER + UNWRITTEN)
    said = CliRunner().invoke(ptxlab, ["check", str(file)])
    assert "warning[unwritten-register]" in said.stdout
    result = run(file, "--block", 1, "--arg", "f32[1]=ones")
    assert result.exit_code == said.exit_code == 1
    assert result.stdout.endswith(said.stdout)
    assert result.stdout.endswith("\n1 warning in " + str(file) + "\n")
    found = json.loads(run(file, "--block", 1, "--arg", "f32[1]=ones", "--format", "json").stdout)["diagnostics"]
    assert [one["code"] for one in found] == ["unwritten-register"]
    silent = write(tmp_path, HEADER + UNWRITTEN.replace("%f1;\n    ret", "0f00000000;\n    ret"))
    result = run(silent, "--block", 1, "--arg", "f32[1]=ones")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"no errors or warnings in {silent}")


def test_what_check_warns_of_in_another_kernel_is_not(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER + UNWRITTEN + ".entry other() { ret; }\n")
    result = run(file, "--block", 1, "--entry", "other")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"no errors or warnings in {file}")


def test_of_many_kernels_some_are_named(tmp_path: Path) -> None:
    many = write(tmp_path, HEADER + "".join(f".entry k{number}() {{ ret; }}\n" for number in range(1000)))
    said = run(many, "--block", 1).stderr
    assert "`k11` and 988 more\n" in said
    assert len(said) < 400


def test_a_file_without_a_kernel(tmp_path: Path) -> None:
    result = run(write(tmp_path, HEADER + ".func f() { ret; }\n"), "--block", 1)
    assert result.exit_code == 2
    assert result.stderr.endswith("Error: there is no kernel in the file: none of its functions is an `.entry`\n")


def test_an_array_of_nothing_but_nans(saxpy: Path) -> None:
    result = run(saxpy, *ONES, "--arg", "f32=nan", "--arg", "u32=1")
    assert "    nan\n    all of them NaN\n" in result.stdout


def test_what_the_kernel_prints_comes_first(tmp_path: Path) -> None:
    text = HEADER + (
        ".global .b8 hello[3] = {72, 105};\n.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".entry k()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, hello;\n{ .param .b32 r; .param .b64 f; .param .b64 a;\n"
        "st.param.b64 [f], %rd1; st.param.b64 [a], 0; call (r), vprintf, (f, a); }\nret;\n}\n"
    )
    assert run(write(tmp_path, text), "--block", 1).stdout.startswith("Hi\n`k` ran")


def test_a_terminal_is_not_given_control_characters(tmp_path: Path) -> None:
    text = HEADER + (
        ".global .b8 message[6] = {72, 105, 7, 8, 10};\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.entry k()\n{\n.reg .b64 %rd<2>;\n"
        "mov.u64 %rd1, message;\n{ .param .b32 r; .param .b64 f; .param .b64 a;\n"
        "st.param.b64 [f], %rd1; st.param.b64 [a], 0; call (r), vprintf, (f, a); }\nret;\n}\n"
    )
    file = write(tmp_path, text)
    assert run(file, "--block", 1).stdout.startswith("Hi\x07\x08\n`k` ran")
    reader, terminal = os.openpty()
    subprocess.run(
        [sys.executable, "-m", "ptxlab", "run", file, "--block", "1", "--device", "cpu"], stdout=terminal, check=True
    )
    assert "Hi\u2407\u2408\r\n`k` ran" in os.read(reader, 10_000).decode()
    os.close(terminal)
    os.close(reader)


def test_seeds_stop_at_the_first_finding_and_say_how_to_replay(tmp_path: Path) -> None:
    file = write(tmp_path, RACE)
    arguments = [file, "--block", "32", "--arg", "u32[1]=zeros", "--no-detectors", "--device", "cpu"]
    assert run(*arguments).exit_code == 0  # in the usual order thread 0 comes first
    result = run(*arguments, "--seeds", 50)
    assert result.exit_code == 1
    (note,) = [line for line in result.stdout.splitlines() if "replay with" in line]
    seed = int(note.partition("--seed ")[2].partition("`")[0])
    assert 0 < seed < 50
    assert run(*arguments, "--seed", seed).exit_code == 1


def test_a_number_for_bits_says_its_type(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER + ".entry k(.param .b32 n) { ret; }\n")
    result = run(file, "--block", 1, "--arg", "2")
    assert (result.exit_code, "`2`: the parameter `n` is `.b32`: write the type, `u32=…`" in result.stderr) == (2, True)
    assert run(file, "--block", 1, "--arg", "f32=2", "--device", "cpu").exit_code == 0


def test_one_detector_alone(tmp_path: Path) -> None:
    file = write(
        tmp_path, RACE.replace("    atom.global.add.u32 %r2, [%rd1], 1;", "    st.global.u32 [%rd1], %r1;\n    ret;")
    )
    arguments = [file, "--block", "32", "--arg", "u32[1]=zeros"]
    assert "data-race" in run(*arguments, "--detector", "data-race").stdout
    assert "data-race" not in run(*arguments, "--detector", "uninitialized-read").stdout


def test_part_of_a_grid(saxpy: Path) -> None:
    result = run(saxpy, *LAUNCH, "--blocks", "1 3,0")
    assert "y: f32[1024], 512 of 1,024 elements changed" in result.stdout
    assert "`saxpy` ran on 2 of 4 blocks of 256 threads" in result.stdout
    assert run(saxpy, *LAUNCH, "--blocks", "4").exit_code == 2


def test_the_report_says_whose_arithmetic_it_is(tmp_path: Path) -> None:
    (tmp_path / "saxpy.ptx").write_text(SAXPY)
    shown = run(tmp_path / "saxpy.ptx", *LAUNCH, "--report", "--gpu", "h200", "--contract", "all")
    (line,) = [line for line in shown.output.splitlines() if line.startswith("fidelity: ")]
    assert line.startswith("fidelity: as on an H200: ")
    assert "fidelity" not in run(tmp_path / "saxpy.ptx", *LAUNCH).output
    found = json.loads(run(tmp_path / "saxpy.ptx", *LAUNCH, "--format", "json").stdout)["fidelity"]
    assert (found["gpu"], found["contract"], found["modelled"]) == ("A100", "none", {})
    refused = run(tmp_path / "saxpy.ptx", *LAUNCH, "--gpu", "H2000")
    assert refused.exit_code == 2
    assert "did you mean 'H200'? expected one of V100, T4, A100" in refused.stderr


def test_profile_shows_the_lines_that_cost_most(tmp_path: Path) -> None:
    file = write(tmp_path, SAXPY.replace("%r4, 4;", "%r4, 32;"))
    result = run(file, "--block", "128", "--arg", "f32[4096]=ones", "--arg", "f32[4096]=ones", *ARGUMENTS[4:],
                 "--profile")  # fmt: skip
    lines = result.stdout.splitlines()
    assert "global memory: 1,024 bytes read, 512 bytes written" in lines
    (cost,) = [line.split() for line in lines if line.endswith("ld.global.f32 %f2, [%rd4];")]
    assert cost[:6] == ["27", "128", "512", "32.0", "(ideal", "4.0)"]


def test_a_picture_is_not_printed_into_what_programs_read(saxpy: Path, tmp_path: Path) -> None:
    refused = run(saxpy, *LAUNCH, "--format", "json", "--draw", "27")
    assert refused.exit_code == 2
    assert "`--draw` prints a picture, `--format json` does not: name a file for it" in refused.stderr
    written = run(saxpy, *LAUNCH, "--format", "json", "--draw", f"27={tmp_path / 'line.svg'}")
    assert json.loads(written.stdout)["diagnostics"] == []
    assert (tmp_path / "line.svg").exists()


def test_options_in_messages_are_those_of_the_command_line(tmp_path: Path) -> None:
    """Python has another name for them: `tests/emulate/test_races.py`."""
    racy = "mov.u32 %r1, %tid.x;\n ld.param.u64 %rd1, [x];\n st.global.u32 [%rd1], %r1;\n ret;"
    text = f"{HEADER}.entry k(.param .u64 x) {{ .reg .b32 %r<2>; .reg .b64 %rd<2>; {racy} }}"
    result = run(write(tmp_path, text), "--block", "64", "--arg", "u32[1]", "--seed", "7")
    assert "note: replay with `--seed 7`\n" in result.stdout
