"""Pictures of tiles and of accesses agree with what the emulator counts."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab import draw
from ptxlab.cli.group import ptxlab as command
from ptxlab.isa.units.swizzle import SWIZZLES

ROWS = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry rows(.param .u64 offsets, .param .u64 out)
{
    .shared .align 1024 .b8 room[32768];
    .reg .b32 %r<8>; .reg .b64 %p<4>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %p1, [offsets];
    ld.param.u64 %p2, [out];
    mad.wide.u32 %p1, %r1, 4, %p1;
    mad.wide.u32 %p2, %r1, 4, %p2;
    ld.global.b32 %r2, [%p1];
    mov.u32 %r3, room;
    add.u32 %r2, %r2, %r3;
    st.shared.v4.b32 [%r2], {%r1, %r1, %r1, %r1};
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];
    st.global.b32 [%p2], %r4;
    ret;
}
"""
LDMATRIX = 1 + [line.strip().startswith("ldmatrix") for line in ROWS.split("\n")].index(True)


def measured_wavefronts(rows: int, columns: int, swizzle: str | None, pitch: int) -> int:
    """The wavefronts that the emulator counts for `ldmatrix` of the first eight rows of a tile of f16, at worst."""
    worst = 0
    for piece in range(columns // 8):
        offsets = [row * pitch * 2 + piece * 16 for row in range(8)]
        if swizzle is not None:
            offsets = [SWIZZLES[swizzle].apply(offset) for offset in offsets]
        given = np.array(offsets * 4, np.uint32)
        result = ptxlab.parse(ROWS)["rows"].launch(
            1, 32, [given, np.zeros(32, np.uint32)], profile=True, detectors=False
        )
        worst = max(worst, result.counters["lines"][LDMATRIX]["wavefronts"])
    return worst


@pytest.mark.parametrize(("columns", "swizzle", "pitch", "wavefronts"), [
    (64, None, 64, 8), (64, "128B", 64, 1), (32, "64B", 32, 1), (16, "32B", 16, 1), (64, "32B", 64, 4),
    (32, None, 40, 1), (16, None, 16, 2),
])  # fmt: skip
def test_what_a_tile_costs_is_what_the_emulator_counts(
    columns: int, swizzle: str | None, pitch: int, wavefronts: int
) -> None:
    picture = draw.tile(8, columns, "f16", swizzle, pitch)
    note = picture.panels[0].note
    assert ("takes 1 wavefront" in note) == (wavefronts == 1)
    assert wavefronts == 1 or f"takes {wavefronts} wavefronts" in note
    assert measured_wavefronts(8, columns, swizzle, pitch) == wavefronts


def test_each_piece_of_a_tile_is_where_both_panels_say() -> None:
    tile, memory = draw.tile(16, 64, "bf16", "128B").panels
    found = 0
    for line, cells in enumerate(memory.cells):
        for place, cell in enumerate(cells):
            assert cell is not None
            row, column = map(int, cell.text.split(","))
            there = tile.cells[row][column // 8]
            assert there is not None
            assert there.text == memory.column_names[place]
            assert line == row
            found += 1
    assert found == 16 * 8


@pytest.mark.parametrize(
    ("extent", "options", "wanted"),
    [
        ((8, 4), {}, "a row of 4 f16 has 8 bytes"),
        ((8, 64), {"swizzle": "16B"}, "expected one of 32B, 64B, 128B"),
        ((8, 64), {"type": "f17"}, "type 'f17'"),
        ((8, 64), {"pitch": 32}, "rows 64 bytes apart: at least 128"),
        ((0, 64), {}, "can be drawn"),
    ],
)
def test_what_is_not_a_tile_is_reported(extent: tuple[int, int], options: dict[str, object], wanted: str) -> None:
    with pytest.raises(ValueError, match=re.escape(wanted)):
        draw.tile(*extent, **options)  # type: ignore[arg-type]


STRIDED = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry strided(.param .u64 out)
{
    .shared .align 4 .b8 room[8192];
    .reg .b32 %r<5>; .reg .b64 %p<3>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 3;
    mov.u32 %r3, room;
    add.u32 %r3, %r3, %r2;
    st.shared.b32 [%r3], %r1;
    ld.param.u64 %p1, [out];
    mad.wide.u32 %p1, %r1, 12, %p1;
    st.global.b32 [%p1], %r1;
    ret;
}
"""
SHARED, GLOBAL = (1 + [line.strip().startswith(f"st.{space}") for line in STRIDED.split("\n")].index(True)
                  for space in ("shared", "global"))  # fmt: skip


def test_lanes_that_meet_in_a_bank_are_drawn_below_each_other() -> None:
    result = ptxlab.parse(STRIDED)["strided"].launch(1, 32, [np.zeros(96, np.uint32)], profile=True)
    (panel,) = draw.accesses(result, SHARED).panels
    assert len(panel.cells) == result.counters["lines"][SHARED]["wavefronts"] == 2
    assert [cell.text if cell else None for cell in panel.cells[0]][:4] == ["0", None, "1", None]
    assert [cell.text if cell else None for cell in panel.cells[1]][:4] == ["16", None, "17", None]
    (panel,) = draw.accesses(result, GLOBAL).panels
    touched = [cell for row in panel.cells for cell in row if cell is not None]
    assert len(touched) == result.counters["lines"][GLOBAL]["sectors"] == 12
    assert "12 sectors of 32 bytes; 32 lanes with 4 bytes each could do with 4" in panel.note


def test_a_line_without_accesses_is_reported() -> None:
    result = ptxlab.parse(STRIDED)["strided"].launch(1, 32, [np.zeros(96, np.uint32)], profile=True)
    with pytest.raises(ValueError, match=rf"line 1; those that did: {SHARED}, {GLOBAL}"):
        draw.accesses(result, 1)
    plain = ptxlab.parse(STRIDED)["strided"].launch(1, 32, [np.zeros(96, np.uint32)])
    with pytest.raises(ValueError, match="launch with `profile=True`"):
        draw.accesses(plain, SHARED)


DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_what_is_printed() -> None:
    """`BLESS=1` writes it anew."""
    page = (DOCS / "draw.md").read_text("utf-8")

    def run(shown: re.Match[str]) -> str:
        return f"```console\n$ ptxlab {shown[1]}\n{CliRunner().invoke(command, shown[1].split()).output}```"

    made, count = re.subn(r"```console\n\$ ptxlab (.*?)\n(.*?)```", run, page, flags=re.DOTALL)
    assert count == 6
    if os.environ.get("BLESS"):
        (DOCS / "draw.md").write_text(made, "utf-8")
    assert made == (DOCS / "draw.md").read_text("utf-8")
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)


def test_the_drawings_of_the_page_are_what_is_drawn(tmp_path: Path) -> None:
    """Their texts are the commands that draw them; `BLESS=1` draws them anew."""
    page = (DOCS / "draw.md").read_text("utf-8")
    drawings = re.findall(r"!\[ptxlab (draw .*?)\]\((.*?)\)", page)
    assert len(drawings) == 4
    for words, file in drawings:
        made = tmp_path / "made.svg"
        result = CliRunner().invoke(command, [*words.split(), "-o", str(made)])
        assert result.exit_code == 0, result.output
        if os.environ.get("BLESS"):
            (DOCS / file).write_bytes(made.read_bytes())
        assert (DOCS / file).read_bytes() == made.read_bytes()
    assert {path.name for path in (DOCS / "pictures").iterdir()} >= {Path(file).name for _, file in drawings}


def test_a_wide_picture_continues_below() -> None:
    wide = draw.descriptor(0x0000001000080040, 16, 16, "f16", "mn")
    for width in (60, 80):
        lines = wide.text(width=width).splitlines()
        assert max(map(len, lines)) <= width
    assert "(continued)" in lines
    assert wide.text(width=200) == wide.text()


def test_the_command_line_draws(tmp_path: Path) -> None:
    runner = CliRunner()
    kernel, file = tmp_path / "strided.ptx", tmp_path / "tile.svg"
    kernel.write_text(STRIDED)
    shown = runner.invoke(command, ["draw", "tile", "8x64", "--swizzle", "128B"])
    assert shown.exit_code == 0
    assert "a tile of 8x64 f16, swizzle 128B" in shown.output
    written = runner.invoke(command, ["draw", "tile", "8x64", "-o", str(file)])
    assert written.output == f"wrote {file}\n"
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
    launch = ["run", str(kernel), "--block", "32", "--arg", "u32[96]=zeros"]
    drawn = runner.invoke(command, [*launch, "--draw", str(SHARED)])
    assert drawn.exit_code == 0
    assert "2 wavefronts" in drawn.output
    for wrong, message in (
        (["draw", "tile", "8"], "`8` is not like 8x64"),
        (["draw", "tile", "8x64", "-o", "tile.pdf"], "saved as `.svg` or `.txt`"),
        (["draw", "fragments", "mma.sync"], "not an instruction with all its modifiers"),
        ([*launch, "--draw", "first"], "is not like 12 or 12=banks.svg"),
        ([*launch, "--draw", "1"], "no warp accessed memory at line 1"),
        ([*launch, "--draw", "1", "--device", "cuda"], "`--draw` is for the emulator"),
    ):
        refused = runner.invoke(command, wrong)
        assert refused.exit_code == 2
        assert message in refused.output
