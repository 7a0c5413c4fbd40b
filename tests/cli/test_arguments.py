"""`--arg`: tensor maps, structures, null pointers, arrays with names, files; each as a launch from Python has it."""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import HEADER, run, write

import ptxlab
from ptxlab.cli.arguments import make_arguments, parse_argument, split_arguments
from ptxlab.cli.debug import Session, opener
from ptxlab.debug.values import UnknownError

TMA = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 out)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<5>;
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra wait;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {0, 0}], [bar];
wait:
    bar.sync 0;
again:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra again;
    ld.param.u64 %rd2, [out];
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %r1, 4, %r2;
    ld.shared.f32 %f1, [%r2];
    st.global.f32 [%rd2], %f1;
    ret;
}
"""
LINE = (
    HEADER
    + """
.visible .entry line(.param .align 8 .b8 p[24], .param .u64 q)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    ld.param.b64 %rd1, [p];
    ld.param.b32 %r1, [p+8];
    ld.param.b32 %r2, [p+16];
    ld.param.b64 %rd4, [q];
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd2, %r3, 4;
    add.s64 %rd3, %rd1, %rd2;
    mad.lo.u32 %r1, %r1, %r3, %r2;
    st.global.b32 [%rd3], %r1;
    add.s64 %rd3, %rd4, %rd2;
    st.global.b32 [%rd3], %r1;
    ret;
}
"""
)
LINES = 3 * np.arange(8) + 5


@pytest.mark.parametrize(
    ("map", "made"),
    [
        ("map:f32[16,32]=arange,box=8x32,swizzle=128B", {"box": (8, 32), "swizzle": "128B"}),
        ("map:f32[16,32]=arange,box=16,32,element_strides=2,1", {"box": (16, 32), "element_strides": (2, 1)}),
    ],
)
def test_a_tensor_map_is_that_of_python(tmp_path: Path, map: str, made: dict) -> None:
    file = write(tmp_path, TMA)
    result = run(file, "--block", 256, "--arg", map, "--arg", "f32[256]", "--save", tmp_path / "out")
    assert (result.exit_code, "no errors or warnings" in result.stdout) == (0, True)
    x, y = np.arange(512, dtype=np.float32).reshape(16, 32), np.zeros(256, np.float32)
    ptxlab.load(file)["copy"].launch(1, 256, [ptxlab.tensor_map(x, **made), y], device="cpu")
    assert np.array_equal(np.load(tmp_path / "out" / "out.npy"), y)
    assert np.array_equal(np.load(tmp_path / "out" / "map.npy"), x)
    assert np.count_nonzero(y) == 255


def test_a_map_and_its_array_are_two_arguments_of_one_array(tmp_path: Path) -> None:
    """The first row is copied over the second."""
    file = write(tmp_path, TMA)
    given = ["--arg", "x:map:f32[16,32]=arange,box=8x32", "--arg", "=x,at=256"]
    result = run(file, "--block", 256, *given, "--save", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert np.array_equal(np.load(tmp_path / "out" / "map.npy").reshape(2, 256), [np.arange(256)] * 2)
    assert not (tmp_path / "out" / "out.npy").exists()


def test_a_map_of_padded_rows(tmp_path: Path) -> None:
    file = write(tmp_path, TMA)
    odd = "map:f32[8,30]=ones,box=8x32"
    assert run(file, "--block", 256, "--arg", odd, "--arg", "f32[256]").stderr.endswith(
        "dimension 0 of the array has a stride of 120 bytes: it must be a multiple of 16 below 2**40; pad the rows, as "
        "with a view of a wider array: `strides=128`\n"
    )
    result = run(file, "--block", 256, "--arg", f"{odd},strides=128", "--arg", "f32[256]", "--save", tmp_path / "out")
    assert result.exit_code == 0, result.output
    tile = np.load(tmp_path / "out" / "out.npy").reshape(8, 32)
    assert (tile[:, :30] == 1).all()
    assert (tile[:, 30:] == 0).all()


def test_a_map_of_another_tensor_in_the_memory_of_an_array() -> None:
    given = ["x:f16[160,2,64]=random", "map:=x,shape=2x160x64,strides=128x256,box=1x64x64"]
    x, made = make_arguments([parse_argument(text) for text in given], (0,))
    assert made.encode(0) == ptxlab.tensor_map(x.transpose(1, 0, 2), (1, 64, 64)).encode(0)
    assert np.shares_memory(made.array, x)


def test_a_map_for_im2col() -> None:
    text = "im2col:f16[8,14,14,64]=random,channels=64,pixels=128,lower=-1x-1,upper=-1,-1,swizzle=128B"
    (made,) = make_arguments([parse_argument(text)], (0,))
    images = np.zeros((8, 14, 14, 64), np.float16)
    expected = ptxlab.im2col_map(images, 64, 128, lower=(-1, -1), upper=(-1, -1), swizzle="128B")
    assert made.encode(0) == expected.encode(0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["map:f32[16,32],box=8x64,swizzle=128B"], "256 bytes: a swizzle of 128B has room for 128\n"),
        (["map:f32[16,32],box=300x32"], "dimension 0 of the box has 300 elements: there are 1 to 256\n"),
        (["map:f32[16,32],box=32"], "box has 1 dimensions, the array has 2\n"),
        (["map:f32[16,32],box=8by32"], "`box=8by32` is not like `box=64x64`\n"),
        (["map:f32[16,32]"], "a tensor map needs `box=`, such as `box=64x64`\n"),
        (["map:f32[16,32],box=8x32,swizle=128B"], "there is no option `swizle`; did you mean `swizzle`?\n"),
        (["map:f32[16,32],box=8x32,swizzle=7B"], "swizzle='7B': expected one of None, '32B', "),
        (["map:f32[16,32],box=8x32,box=8x32"], "`box=` is given twice\n"),
        (["map:u32=5,box=3"], "a tensor map is of an array, such as `map:f16[128,256]=random`\n"),
        (["map:f64[16,32],box=8x16,fill=nan,type=f16"], "type='f16' needs an array of 16-bit elements, not of float64"),
        (["map:f32[16,32],box=8x32,shape=8x8"], "`shape=` is for the array of an argument before"),
        (
            ["map:f32[16,32],box=8x32,strides=126"],
            "expected strides of 1 dimensions, all but the innermost, in multiples of 4 ",
        ),
        (["map:f32[16,32],box=8x32,strides=128x4"], "expected strides of 1 dimensions, all but the innermost, in "),
        (
            ["x:f32[8,8]", "map:=x,box=8x8x8x8,shape=999999999x999999999x99999x8,strides=0x0x0"],
            "than there is memory for",
        ),
        (["x:f32[8,8]", "map:=x,box=8x8,shape=9x8"], "the tensor ends after 288 bytes, the array has 256\n"),
        (["=x"], "no argument before it is named `x`: name one, as `x:f32[64]=zeros`\n"),
        (["same"], "no argument before it is an array\n"),
        (["x:f32[4]", "=x,at=4"], "at=4: `x` has 4 elements, 0 to 3\n"),
        (["x:f32[4]", "=x,of=4"], "there is no option `of`; "),
        (["="], "expected the name of an array after `=`"),
        (["x:u32=4"], "only an array has a name: `x:f32[64]=zeros`\n"),
        (["(1, 2"], "expected `)` at the end of the structure\n"),
        (["{1, 2}"], "expected the offset of each field, such as `{0: 2.0, 8: 64}`\n"),
        (["(u32[4]=1, 2, 3)"], "values of an array, or fields? Separate the fields by `;`\n"),
        (["(u32[4], map:f32[4,4],box=4x4)"], "; fields that have commas themselves are separated by `;`\n"),
        (["(five, 2)"], "`five` is not like `2.0`, `f32=2.0`"),
        (["2.0"], "the parameter `p` is a structure: write `(2.0, …)`\n"),
        (["f32[]=@k.bin"], "`k.bin` has 10 bytes, not whole elements\n"),
        (["f32[4]=@k.bin"], "`k.bin` has 10 bytes, f32[4] has 16\n"),
    ],
)
def test_what_is_wrong_is_said_with_the_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.bin").write_bytes(bytes(10))
    result = run(write(tmp_path, LINE), "--block", 8, *(word for one in arguments for word in ("--arg", one)))
    assert result.exit_code == 2
    assert f"Error: Invalid value for --arg: `{arguments[-1]}" in result.stderr
    assert said in result.stderr


@pytest.mark.parametrize(
    "structure",
    ["(x:i32[16], 3, 5)", "(x:i32[16]=zeros; 3; 5)", "{0: x:i32[16], 8: 3, 16: 5}", "(x:i32[16],u32=3,(5))"],
)
def test_a_structure_with_an_array_and_a_pointer_to_its_middle(tmp_path: Path, structure: str) -> None:
    file = write(tmp_path, LINE)
    result = run(file, "--block", 8, "--arg", structure, "--arg", "=x,at=8", "--save", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("p+0: s32[16], 16 of 16 elements changed\n")
    assert np.array_equal(np.load(tmp_path / "out" / "p+0.npy").reshape(2, 8), [LINES] * 2)


def test_the_origin_of_a_wrong_element_of_a_structure(tmp_path: Path) -> None:
    np.save(tmp_path / "want.npy", np.zeros(8, np.int32))
    given = ["--block", 8, "--arg", "(i32[8], 3, 5)", "--arg", "u32[8]", "--expect", f"p+0={tmp_path / 'want.npy'}"]
    result = run(write(tmp_path, LINE), *given)
    assert result.exit_code == 1
    assert "p+0[0] is 5, and 0 was expected; 8 of 8 elements are wrong" in result.stdout


def test_a_null_pointer(tmp_path: Path) -> None:
    result = run(write(tmp_path, LINE), "--block", 8, "--arg", "(i32[8], 3, 5)", "--arg", "null")
    assert "= note: 0x0 is a null pointer\n" in result.stdout
    result = run(write(tmp_path, LINE), "--block", 8, "--arg", "(null, 3, 5)", "--arg", "u32[8]")
    assert "= note: 0x0 is a null pointer\n" in result.stdout


def test_a_file_of_bytes(tmp_path: Path) -> None:
    np.arange(8, dtype=np.int16).tofile(tmp_path / "raw")
    np.save(tmp_path / "named", np.arange(8, dtype=np.int16))
    (tmp_path / "named.npy").rename(tmp_path / "named")
    for text in ("i16[]=@{}/raw", "i16[2,4]=@{}/raw", "i16[]=@{}/named"):
        (made,) = make_arguments([parse_argument(text.format(tmp_path))], (0,))
        assert np.array_equal(made.reshape(-1), np.arange(8))


def test_each_seed_starts_from_the_same_arrays(tmp_path: Path) -> None:
    file = write(tmp_path, TMA)
    result = run(file, "--block", 256, "--seeds", 3, "--arg", "map:f32[8,32]=random,box=8x32", "--arg", "f32[256]")
    assert result.exit_code == 0, result.output
    assert "out: f32[256], 256 of 256 elements changed" in result.stdout


def test_arguments_of_a_run_line_with_commas_between_them() -> None:
    given = ["u32[4]=1,2,-3,4", "x:map:f16[8,64],box=8x64,fill=zeros", "f32=0.5", "=x,at=2", "(1,2;f32[2]=1,2)", "f32"]
    assert split_arguments(",".join(given)) == given


def test_a_launch_configuration_of_an_editor(tmp_path: Path) -> None:
    opened = (
        Session()
        .with_request(
            {"program": str(write(tmp_path, TMA)), "block": 256, "args": ["map:f32[8,32]=ones,box=8x32", "f32[256]"]}
        )
        .open()
    )
    assert np.array_equal(opened.debugger.trace.memory("global")["out"], np.ones(256))
    wrong = {"program": str(write(tmp_path, TMA)), "block": 256, "args": ["map:f32[8,32]=ones,box=9x99", "f32[256]"]}
    with pytest.raises(UnknownError, match="a row of the box has 99 elements"):
        opener(Session())(wrong)
