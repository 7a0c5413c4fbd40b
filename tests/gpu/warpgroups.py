"""Whether the emulator and a GPU agree on wgmma: tiles of every form, through descriptors of all kinds.

    PYTHONPATH=src:. python3 -m tests.gpu.warpgroups measure warpgroups.json
    PYTHONPATH=src:. python3 -m tests.gpu.warpgroups compare warpgroups.json --evidence

The first runs on a machine with a GPU and keeps a checksum of each tile. The second runs the same tiles on the
emulator, prints where they differ, and with `--evidence` adds what it found to evidence/agreement_gpu.json.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

import ptxlab
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms
from ptxlab.isa.units.descriptor import CHUNK, MODES, WIDTHS, Descriptor
from ptxlab.isa.units.fragment import extents
from ptxlab.numbers import FORMATS, Format
from tests.emulate.warpgroups import THREADS, Product, element_bits
from tests.gpu import agreement
from tests.gpu.values import HALVES, PAIRS, floats, integers
from tests.isa.sample import sample_choices

IMAGE = 1 << 16
HALF = IMAGE // 2  # A is in the first half of the image, B in the second
STEPS = (16, 32, 64, 128, 144, 256, 272, 512, 1024, 1152, 2048, 4096)
Task = tuple[int, int, int, str]  # the number of a form of these, spellings of it, tiles of each, and where they run
Found = dict[str, Any]


def examined() -> list[Form]:
    """The forms that multiply."""
    return [form for form in forms() if ".".join(form.name) == "wgmma.mma_async"]


def products(number: int, most: int) -> Iterator[Product]:
    """Some spellings of a form, with any immediates."""
    form = examined()[number]
    rng = np.random.default_rng(number)
    sparse, turns = "sp_sel" in form.syntax, "trans_b" in form.syntax
    choices = sample_choices(form, most)
    for at in sorted(rng.choice(len(choices), min(most, len(choices)), replace=False)):
        choice = choices[at]
        m = form.modifiers(choice)
        selectors = 2 if m.atype in ("f16", "bf16", "tf32") else 1
        yield Product(
            m.dtype,
            m.atype,
            m.btype,
            extents(m.shape)[1],
            in_registers="a_desc" not in form.syntax,
            selector=int(rng.integers(0, selectors)) if sparse else None,
            saturate=bool(m.satfinite),
            scale_a=int(rng.choice([-1, 1])) if m.dtype != "s32" else 1,
            scale_b=int(rng.choice([-1, 1])) if m.dtype != "s32" else 1,
            trans_a=int(rng.integers(0, 2)) if turns and "a_desc" in form.syntax else 0,
            trans_b=int(rng.integers(0, 2)) if turns else 0,
        )


def patterns(rng: np.random.Generator, type: str, count: int, calm: bool) -> npt.NDArray[np.uint64]:
    """Elements of a type: numbers whose sums are worth a look, or whatever there is."""
    format = FORMATS.get(type)
    if isinstance(format, Format):
        found = floats(rng, format, count, calm)
        return np.where(rng.random(count) < 0.05, np.uint64(0), found)
    return integers(rng, {"b1": 8, "s32": 32}.get(type, 8), count)


def packed(rng: np.random.Generator, type: str, bytes: int, calm: bool) -> npt.NDArray[np.uint8]:
    """Memory full of elements of a type."""
    size = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s32": 4}.get(type, 1)
    return patterns(rng, type, bytes // size, calm).astype(f"<u{size}").view(np.uint8)


def any_descriptor(rng: np.random.Generator, rows: int, chunks: int, turned: int, start: int) -> Descriptor:
    """A descriptor of a matrix within half an image, from `start` on."""
    while True:
        mode, leading, stride = int(rng.integers(0, 4)), int(rng.choice(STEPS)), int(rng.choice(STEPS))
        width = WIDTHS[mode]
        right, down = (stride, leading) if mode == 0 and turned else (leading, stride)
        size = 7 * width * CHUNK + (rows // 8 - 1) * down + (chunks - 1) // width * right + width * CHUNK
        first = start + int(rng.integers(0, 64)) * CHUNK
        if first + size + 1024 <= start + HALF:
            base = int(rng.integers(0, 8)) if mode and rng.random() < 0.3 else 0
            return Descriptor(first, leading, stride, MODES[mode], base)


def inputs(product: Product, tiles: int) -> tuple[Any, Any, Any]:
    """Memory, descriptors and registers of so many tiles."""
    rng = np.random.default_rng(crc32(f"{product}".encode()))
    bits = element_bits(product)
    each = CHUNK * 8 // bits
    images, codes, words = [], [], []
    for _ in range(tiles):
        calm = bool(rng.random() < 0.75)
        halves = [packed(rng, type, HALF, calm) for type in (product.atype, product.btype)]
        images.append(np.concatenate(halves))
        a = (product.stored, 64 // each) if product.trans_a else (64, product.stored // each)
        b = (product.depth, product.n // each) if product.trans_b else (product.n, product.depth // each)
        codes.append(
            [
                any_descriptor(rng, *a, product.trans_a, 0).encode(),
                any_descriptor(rng, *b, product.trans_b, HALF).encode(),
            ]
        )
        count = product.layouts[1].registers
        held = np.zeros((THREADS, product.words), np.uint32)
        held[:, :count] = packed(rng, product.dtype, 4 * THREADS * count, calm).view("<u4").reshape(THREADS, count)
        held[:, count : count + 4] = packed(rng, product.atype, 16 * THREADS, calm).view("<u4").reshape(THREADS, 4)
        nibbles = rng.choice(HALVES if product.atype == "tf32" else PAIRS, (THREADS, 8)).astype(np.uint32)
        held[:, count + 4] = np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype=np.uint32), axis=1)
        held[:, -1] = rng.random() < 0.9
        words.append(held)
    return np.stack(images), np.array(codes, np.uint64), np.stack(words)


def run(product: Product, tiles: int, device: str) -> Found:
    """The checksums of what is given and of what comes out, tile by tile."""
    image, codes, words = inputs(product, tiles)
    out = np.zeros((tiles, THREADS, product.layouts[1].registers), np.uint32)
    kernel = ptxlab.parse(product.text(), name="multiply.ptx")["multiply"]
    how: dict[str, Any] = {"detectors": False, "workers": 1} if device == "cpu" else {}
    kernel.launch(tiles, THREADS, [image, IMAGE, codes, words, out], shared=IMAGE, device=device, **how)
    given = crc32(image.tobytes() + codes.tobytes() + words.tobytes())
    return {"opcode": product.opcode, "given": given, "results": [crc32(one.tobytes()) for one in out]}


def examine(task: Task) -> Found:
    """All spellings of a form that are compared."""
    number, most, tiles, device = task
    return {"form": number, "spellings": [run(product, tiles, device) for product in products(number, most)]}


def examine_all(numbers: list[int], most: int, tiles: int, device: str, workers: int) -> list[Found]:
    """The same for many forms, several at a time."""
    tasks = [(number, most, tiles, device) for number in numbers]
    if workers == 1:
        return [examine(task) for task in tasks]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return list(pool.map(examine, tasks))


def measure(options: argparse.Namespace) -> int:
    """Run all forms, and keep what came out with what it came from."""
    from ptxlab import gpu
    from ptxlab.gpu.hardware import driver_release
    from ptxlab.toolchain import find

    started = time.perf_counter()
    found = examine_all(list(range(len(examined()))), options.most, options.tiles, options.device, options.workers)
    known = gpu.devices()
    head = {
        "command": "python -m tests.gpu.warpgroups",
        "options": {"most": options.most, "tiles": options.tiles},
        "gpu": known[0].name if known else None,
        "target": "sm_90a",
        "driver": driver_release() if known else None,
        "cuda": ".".join(map(str, known[0].cuda)) if known else None,
        "ptxas": find("ptxas").version,
        "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "commit": options.commit or agreement.commit(),
        "date": date.today().isoformat(),
        "seconds": round(time.perf_counter() - started, 1),
    }
    options.file.write_text(json.dumps({"head": head, "found": found}), encoding="utf-8")
    print(f"{sum(len(one['spellings']) for one in found)} spellings in {head['seconds']} s")
    return 0


def tallies_of(measured: list[Found], emulated: list[Found]) -> list[agreement.Tally]:
    """How many elements of D were compared, form by form, and how many are in tiles that differ."""
    tallies = []
    for there, here in zip(measured, emulated, strict=True):
        form = examined()[there["form"]]
        tally = agreement.Tally(form.syntax, form.chapter, here["spellings"][0]["opcode"])
        for one, other in zip(there["spellings"], here["spellings"], strict=True):
            assert (one["opcode"], one["given"]) == (other["opcode"], other["given"]), "they were given other tiles"
            shape = next(part for part in one["opcode"].split(".") if part.startswith("m64"))
            elements = 64 * extents(shape)[1]
            wrong = [
                tile for tile, pair in enumerate(zip(one["results"], other["results"], strict=True)) if len({*pair}) > 1
            ]
            tally.spellings += 1
            tally.values += elements * len(one["results"])
            tally.mismatches += elements * len(wrong)
            if wrong:
                tally.shown.append(f"{one['opcode']}: tiles {wrong}")
        tallies.append(tally)
    return tallies


def compare(options: argparse.Namespace) -> int:
    """Run the same on the emulator, and report where it differs."""
    kept = json.loads(options.file.read_text(encoding="utf-8"))
    head, measured = kept["head"], kept["found"]
    numbers = [one["form"] for one in measured]
    emulated = examine_all(numbers, head["options"]["most"], head["options"]["tiles"], "cpu", options.workers)
    tallies = tallies_of(measured, emulated)
    for tally in tallies:
        for line in tally.shown:
            print(line)
    wrong = sum(tally.mismatches for tally in tallies)
    print(f"{len(tallies)} forms, {sum(tally.values for tally in tallies):,} elements: {wrong:,} in tiles that differ")
    if options.evidence:
        agreement.keep(options.output, head, [agreement.entry(tally) for tally in tallies], merge=True)
    return 1 if wrong else 0


def main() -> int:
    """Measure, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("measure", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--most", type=int, default=6, help="spellings of a form")
    parser.add_argument("--tiles", type=int, default=16, help="tiles of a spelling")
    parser.add_argument("--device", default="cuda", help="where `measure` runs; `cpu` tries the program")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--commit", default="", help="what is measured, where there is no git to ask")
    parser.add_argument("--evidence", action="store_true", help="add to evidence/agreement_gpu.json")
    parser.add_argument("--output", type=Path, default=agreement.ROOT / "evidence" / "agreement_gpu.json")
    options = parser.parse_args()
    return measure(options) if options.action == "measure" else compare(options)


if __name__ == "__main__":
    sys.exit(main())
