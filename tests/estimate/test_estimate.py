"""Estimates: what limits small kernels, where the time goes, and what is said where there is no estimate."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command
from ptxlab.estimate import H200, SOURCES
from ptxlab.report import PtxError
from ptxlab.toolchain import assemble, disassemble, find
from ptxlab.toolchain import tools as tools_module
from tests.estimate import kernels

ROOT = Path(__file__).resolve().parents[2]


def has_tools() -> bool:
    try:
        return bool(find("ptxas") and find("nvdisasm"))
    except PtxError:
        return False


needs_tools = pytest.mark.skipif(not has_tools(), reason="no ptxas and nvdisasm: `pip install 'ptxlab[toolchain]'`")


def estimate(text: str, grid: int = 132 * 8, block: int = 256, *args: Any, **how: Any) -> ptxlab.Estimate:
    module = ptxlab.parse(text)
    return ptxlab.estimate(module[module.entries[0]], grid, block, args or [np.zeros(4096, np.float32)], **how)


@cache
def usual(text: str) -> ptxlab.Estimate:
    """The estimate that several tests are about."""
    return estimate(text)


@needs_tools
@pytest.mark.parametrize(
    ("text", "limiter"),
    [
        (kernels.FMA, "FMA pipe"),
        (kernels.SFU, "SFU"),
        (kernels.CONFLICTS, "shared memory"),
        pytest.param(kernels.TENSOR, "tensor cores", marks=pytest.mark.bulk),
    ],
)
def test_the_limiter_is_the_unit_that_the_kernel_is_made_for(text: str, limiter: str) -> None:
    found = usual(text)
    assert found.limiter == limiter
    assert 0.8 < found.unit(limiter).fraction <= 1
    assert found.hot[0].share > 0.01


@needs_tools
def test_cycles_of_the_fma_pipe_are_those_of_its_instructions() -> None:
    found = usual(kernels.FMA)
    warps, instructions = 8 * 8, 16 * 256  # of an SM, of a warp
    assert found.unit("FMA pipe").cycles == pytest.approx(warps * instructions / 4, rel=0.05)


@needs_tools
def test_bank_conflicts_take_time() -> None:
    wrong, right = usual(kernels.CONFLICTS), usual(kernels.NO_CONFLICTS)
    assert wrong.seconds > 20 * right.seconds
    assert (round(wrong.conflicts, 2), right.conflicts) == (0.97, 0)
    assert "97% of its cycles are bank conflicts" in str(wrong)
    assert "ld.volatile.shared" in wrong.hot[0].text


@needs_tools
def test_a_copy_is_limited_by_dram() -> None:
    count = 1 << 24
    x, y = np.zeros(count, np.float32), np.zeros(count, np.float32)
    found = estimate(kernels.COPY, count // 1024, 256, x, y)
    assert found.limiter == "DRAM"
    assert found.dram_bytes == (x.nbytes, y.nbytes)
    assert found.seconds == pytest.approx(x.nbytes / H200.dram_read + y.nbytes / H200.dram_write, rel=0.15)


@needs_tools
def test_dependent_loads_of_few_warps_are_limited_by_latency() -> None:
    found = estimate(kernels.CHAIN, 132, 32, np.zeros(4096, np.uint64))
    assert found.limiter == "latency"
    assert "ld.global" in found.hot[0].text
    assert found.cycles > 200 * H200.l1_latency


@needs_tools
def test_few_blocks_and_the_last_wave_are_named() -> None:
    assert estimate(kernels.FMA, 16).limiter == "too few blocks"
    found = estimate(kernels.FMA, 132 + 8)
    assert found.limiter == "last wave"
    assert found.idle == pytest.approx(1 - 140 / 264)


@needs_tools
def test_a_launch_that_does_next_to_nothing_is_limited_by_its_launch() -> None:
    x = np.zeros(1024, np.float32)
    assert estimate(kernels.COPY, 1, 256, x, x.copy()).limiter == "launch overhead"


@needs_tools
def test_the_text_fits_80_columns_and_names_the_limiter() -> None:
    text = str(usual(kernels.SFU))
    assert max(map(len, text.splitlines())) <= 80
    assert "limited by SFU" in text
    assert "not measured" in text
    assert "ex2.approx.ftz.f32" in text


@needs_tools
def test_occupancy_is_that_of_the_registers_and_shared_memory() -> None:
    found = estimate(kernels.SFU, shared=100_000)
    assert (found.occupancy.blocks, found.occupancy.limiter) == (2, "shared")
    assert found.waves == 132 * 8 / (132 * 2)


@needs_tools
def test_control_codes_hold_the_latency_of_dependent_instructions() -> None:
    chain = kernels.loop("chain", "    fma.rn.f32 %f0, %f0, %f1, %f2;\n" * 4, 3)
    assembly = assemble(chain)
    assert assembly.cubin is not None
    (function,) = disassemble(assembly.cubin)
    code = function.instructions
    dependent = [
        one.control.stall
        for one, after in pairwise(code)
        if one.opcode == after.opcode == "FFMA" and f" {one.text.split()[1]}" in after.text.split(",", 1)[1]
    ]
    assert dependent
    assert min(dependent) >= 4
    loads = [one for one in code if one.opcode.startswith("LDG")]
    assert all(one.control.write_barrier is not None for one in loads)
    waited = {barrier for one in code for barrier in one.control.waits}
    assert {one.control.write_barrier for one in loads} <= waited


@needs_tools
def test_a_b200_has_bounds() -> None:
    found = estimate(kernels.SFU, target="sm_100a")
    assert found.is_bound
    assert found.seconds == max(unit.seconds for unit in found.units)
    assert not {"latency", "launch overhead"} & {unit.name for unit in found.units}
    assert str(found).startswith("`sfu` on a B200: at least ")


@pytest.mark.parametrize("target", ["sm_80", "sm_120a"])
def test_other_gpus_have_no_estimate(target: str) -> None:
    with pytest.raises(PtxError) as caught:
        estimate(kernels.SFU, target=target)
    (found,) = caught.value.diagnostics
    assert found.code == "no-estimate"
    assert f"there is no estimate for `{target}`" in found.message


def test_each_figure_has_a_source() -> None:
    assert all(text for name, text in SOURCES.items() if name != "name")


@needs_tools
def test_command_line(tmp_path: Path) -> None:
    path = tmp_path / "sfu.ptx"
    path.write_text(kernels.SFU)
    how = ["run", str(path), "--estimate", "--grid", "1056", "--block", "256", "--arg", "f32[4096]=zeros"]
    as_text = CliRunner().invoke(command, how)
    assert as_text.exit_code == 0, as_text.output
    assert as_text.output.startswith("`sfu` on an H200: about ")
    as_json = json.loads(CliRunner().invoke(command, [*how, "--format", "json"]).output)
    assert as_json["limiter"] == "SFU"
    refused = CliRunner().invoke(command, [*how, "--profile"])
    assert refused.exit_code == 2
    assert "`--estimate` shows no results: leave out `--profile`" in refused.output


def test_command_line_with_another_target(tmp_path: Path) -> None:
    path = tmp_path / "sfu.ptx"
    path.write_text(kernels.SFU.replace("sm_90", "sm_80"))
    how = ["run", str(path), "--estimate", "--block", "256", "--arg", "f32[4096]=zeros"]
    found = CliRunner().invoke(command, how)
    assert found.exit_code == 2
    assert "error[no-estimate]: there is no estimate for `sm_80` (A100)" in found.output
    assert "--gpu H200" in found.output


def test_command_line_without_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PTXLAB_PTXAS", raising=False)
    monkeypatch.delenv("PTXLAB_NVDISASM", raising=False)
    monkeypatch.setattr(tools_module.importlib.util, "find_spec", lambda name: None)
    path = tmp_path / "sfu.ptx"
    path.write_text(kernels.SFU)
    found = CliRunner().invoke(command, ["run", str(path), "--estimate", "--block", "256", "--arg", "f32[4096]=zeros"])
    assert found.exit_code == 2
    assert "pip install 'ptxlab[toolchain]'" in found.output
    assert "missing-tool" in found.output


def test_the_evidence_is_of_these_figures() -> None:
    evidence = json.loads((ROOT / "evidence" / "estimate.json").read_text(encoding="utf-8"))
    assert evidence["hardware"] == asdict(H200)
    assert evidence["summary"]["all"]["within 1.3"] >= 2 / 3
