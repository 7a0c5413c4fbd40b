"""`ptxlab run` sets, shows and writes variables of the module."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import run, write

# Adds a step of constant memory to a counter, for each thread.
STEPS = """\
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 step[4];
.global .u32 total = 40;
.global .u32 untouched;
.visible .entry k()
{
    .reg .b32 %r<2>;
    ld.const.u32 %r1, [step];
    red.global.add.u32 [total], %r1;
    ret;
}
"""


def test_variables_are_set_shown_and_written(tmp_path: Path) -> None:
    file = write(tmp_path, STEPS)
    result = run(file, "--block", 4, "--set", "step=s32=3", "--save", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == ["total: u32, 1 of 1 elements changed", "    52", "    from 52 to 52"]
    assert np.load(tmp_path / "total.npy") == 52
    assert not (tmp_path / "untouched.npy").exists()
    arguments = [file, "--block", 4, "--set", "step=s32[1]=-1", "--set", "total=s32=2", "--seeds", 3]
    (changed,) = json.loads(run(*arguments, "--format", "json").stdout)["variables"]
    assert (changed["name"], changed["type"], changed["first"]) == ("total", "s32", [-2])


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("stpe=u32=1", "did you mean `step`?"),
        ("step=f64=1", "`step` is uint8[4], the value float64[1]"),
        ("total=f32=1", "`total` is `.u32`, the array holds float32"),
        ("total=u32[2]=1", "`total` is uint32, the value uint32[2]"),
        ("total", "`total` is not like `filter=f32[5]=1,2,3,4,5`"),
        ("total=u33=1", "there is no type `u33`"),
        ("total=u32=x", "Invalid value for --set: `u32=x`: `x` is not an integer"),
    ],
)
def test_settings_that_do_not_fit(tmp_path: Path, setting: str, said: str) -> None:
    result = run(write(tmp_path, STEPS), "--block", 1, "--set", setting)
    assert result.exit_code == 2
    assert said in result.output
