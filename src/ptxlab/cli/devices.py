"""`ptxlab devices`: where kernels can run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ptxlab.gpu import Gpu


@click.command("devices")
@click.option("--format", type=click.Choice(["full", "json"]), default="full", show_default=True,
              help="Text for people, or JSON for programs.")  # fmt: skip
def command(format: str) -> None:
    """List the GPUs of this machine and what they can run.

    \b
    Example:
      ptxlab devices
    """
    from ptxlab.gpu import absence, devices
    from ptxlab.gpu.hardware import driver_release

    found = devices()
    release = driver_release() if found else None
    problem = absence()
    if format == "json":
        click.echo(json.dumps([as_object(gpu, release) for gpu in found], indent=2))
        return
    for gpu in found:
        click.echo(f"cuda:{gpu.number}  {gpu.name}, {gpu.target}, {gpu.memory / 2**30:.1f} GiB, "
                   f"{gpu.sm_count} SMs")  # fmt: skip
        known = f"driver {release}, " if release else ""
        click.echo(f"        {known}CUDA {spell(gpu.cuda)}; runs modules for {runs(gpu)}")
        click.echo(
            f"        its driver compiles PTX up to {spell(gpu.newest_ptx)}; a newer ptxas can compile newer PTX"
        )
    if problem is not None:
        click.echo(f"no GPU: {problem.notes[0]}")
        for help in problem.helps[:1]:
            click.echo(f"        {help.text}")
    click.echo("cpu     the emulator runs kernels here, for every target it knows, and finds what is wrong in them")


def runs(gpu: Gpu) -> str:
    """`sm_90 and earlier, sm_90a`"""
    special = [target for target in gpu.targets if target[-1].isalpha()]
    return ", ".join([f"{gpu.target} and earlier", *special])


def spell(version: tuple[int, int]) -> str:
    """`13.0`"""
    return f"{version[0]}.{version[1]}"


def as_object(gpu: Gpu, release: str | None) -> dict[str, object]:
    """All that is known of a GPU, for programs."""
    return {
        "device": f"cuda:{gpu.number}",
        "name": gpu.name,
        "target": gpu.target,
        "memory": gpu.memory,
        "multiprocessors": gpu.sm_count,
        "shared": gpu.shared,
        "driver": release,
        "cuda": spell(gpu.cuda),
        "newest_ptx": spell(gpu.newest_ptx),
        "targets": gpu.targets,
    }
