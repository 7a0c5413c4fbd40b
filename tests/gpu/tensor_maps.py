"""Whether the emulator and a GPU agree on tensor maps: their bytes, copies by them, and kernels that change them.

    PYTHONPATH=src:. python3 -m tests.gpu.tensor_maps --maps=2000 --copies=300 --evidence

Random maps are encoded by the driver and here. Random copies (tiles, im2col, interleaved elements; loads, stores,
reductions) run on both devices; shared memory and the tensor are compared byte by byte. `tensormap.replace` of every
field is compared on maps of zeros, of ones and of the driver; and a map that is changed between two copies is used with
its fences and without. The status is 1 if anything differs. `--evidence` writes evidence/tensor_maps.json.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab import gpu
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.isa.units.tensor_map import ELEMENT_TYPES
from tests.emulate.tensor_boxes import TILE, kernel, load, store

ROOT = Path(__file__).resolve().parents[2]
TARGET = "sm_90a"
TYPES = tuple(name for name, type in ELEMENT_TYPES.items() if type.bits >= 8)
FLOATS = ("f16", "bf16", "f32", "f64")
REDUCED = ("u32", "f32", "f32.ftz", "f16", "u64")
MEMORY = 1 << 16  # bytes of a tensor that is copied
SAMPLE = 120  # encodings that are kept


@dataclass(frozen=True)
class Copy:
    """A copy by a map: `work` in the kernel of `tests.emulate.test_tensor_maps`."""

    map: TensorMap
    work: str
    coordinates: Sequence[int]
    offsets: Sequence[int]
    bytes: int


def draw_map(r: random.Random, array: Any, *, small: bool) -> TensorMap:
    """A map that the driver takes; a `small` one of a tensor that is within `MEMORY`."""
    is_image, interleave = r.random() < 0.5, r.choice([None, None, "16B", "32B"])
    type = r.choice(TYPES)
    width = ELEMENT_TYPES[type].bits // 8
    rank = r.randint(3, 5) if is_image or interleave else r.randint(1, 5)
    swizzle = r.choice([None, "32B", "64B", "128B"]) if not interleave else r.choice([None, "32B"])
    swizzle = None if interleave == "16B" else swizzle
    inner = r.choice([16, 32, 64, 128, 48][: 2 if swizzle == "32B" else 3 if swizzle == "64B" else 5]) // width
    most = 6 if small else 1 << r.randint(3, 20)
    sizes = [r.choice([inner, r.randint(1, 40)]), *(r.randint(1, most) for _ in range(rank - 1))]
    unit = 32 if interleave == "32B" else 16
    slice = {None: width, "16B": 16, "32B": 32}[interleave]
    strides, at = [], sizes[0] * slice
    for size in sizes[1:]:
        at = (-(-at // unit) + r.choice([0, 0, 1])) * unit if small else unit * r.randint(1, 1 << r.randint(1, 30))
        strides.append(at)
        at *= size
    given: dict[str, Any] = {
        "array": array, "offset": 0, "type": type, "sizes": tuple(sizes), "strides": tuple(strides),
        "steps": (1, *(r.choice([1, 1, 2, 3]) for _ in sizes[1:])), "swizzle": swizzle, "interleave": interleave,
        "l2_promotion": r.choice([None, "64B", "128B", "256B"]),
        "fill": r.choice(["zeros", "nan"]) if type in FLOATS else "zeros",
    }  # fmt: skip
    if not is_image:
        return TensorMap(box=(inner, *(r.randint(1, 4) for _ in sizes[1:])), **given)
    images = sizes[:-2] if interleave else sizes[1:-1]
    lower = [r.randint(-3, 2) for _ in images]
    upper = [max(r.randint(-3, 2), low - size + 1) for low, size in zip(lower, images, strict=True)]
    return TensorMap(box=(inner,), pixels=r.randint(1, 40), lower=tuple(lower), upper=tuple(upper), **given)


def rows_of(map: TensorMap) -> int:
    """The rows that a copy has in shared memory."""
    if map.pixels:
        return map.pixels
    counts = [-(-extent // step) for extent, step in zip(map.box, map.steps, strict=True)]
    if map.interleave:
        counts[-2] = 1
    return int(np.prod(counts if map.interleave else counts[1:]))


def draw_copy(r: random.Random, map: TensorMap) -> Copy:
    """A copy that a GPU does: it starts where it may."""
    rank = len(map.sizes)
    slice = {None: map.box[0] * map.bits // 8, "16B": 16, "32B": 32}[map.interleave]
    is_store = r.random() < 0.4 and all(low >= 0 for low in map.lower) and all(high <= 0 for high in map.upper)
    first = r.choice([0, 0, 16 * 8 // map.bits, -16 * 8 // map.bits])
    start = [first, *(r.randint(-2, 4) for _ in map.sizes[1:])]
    if map.interleave:
        start[0] = r.randint(0, 3)
    at = 0 if map.interleave else 1
    for number, (low, high) in enumerate(zip(map.lower, map.upper, strict=True)):
        start[at + number] = r.randint(low, map.sizes[at + number] + high - 1)
    offsets = [r.randint(0, 3) for _ in map.lower]
    if is_store:
        reduction = ".add" if map.type in REDUCED and r.random() < 0.5 else ""
        work = store(rank, "im2col_no_offs" if map.pixels else "tile", reduction)
        return Copy(map, work, [max(place, 0) for place in start], [], 0)
    work = load(rank, "im2col" if map.pixels else "tile", len(offsets))
    return Copy(map, work, start, offsets, rows_of(map) * slice)


def copies(count: int, seed: int) -> Iterator[Copy]:
    """Random copies of what fits into memory and a tile."""
    r = random.Random(seed)
    while count:
        words = np.frombuffer(r.randbytes(MEMORY), np.uint32).copy()
        words[::7] &= 0x807FFFFF  # subnormal numbers
        words[::11] = words[::11] & 0xFFFFE000 | 0x1000  # ties of tf32
        map = draw_map(r, words.view(np.uint8), small=True)
        slice = {None: 1, "16B": 16, "32B": 32}[map.interleave]
        end = map.sizes[0] * slice * map.bits + sum(
            size * stride for size, stride in zip(map.sizes[1:], map.strides, strict=True)
        )
        pitch = int(map.swizzle[:-1]) if map.swizzle else slice * map.box[0] * map.bits // 8
        if end < MEMORY and rows_of(map) * pitch <= TILE:
            count -= 1
            yield draw_copy(r, map)


def launch(copy: Copy, device: str) -> tuple[bytes, bytes]:
    """Shared memory and the tensor afterwards."""
    out, array = np.zeros(TILE, np.uint8), copy.map.array.copy()
    source = (np.arange(TILE // 4, dtype=np.uint32) + 0x007FFF00).view(np.uint8)
    start = [*copy.coordinates, *[0] * (5 - len(copy.coordinates)), *copy.offsets, *[0] * (3 - len(copy.offsets))]
    map = TensorMap(**{**vars(copy.map), "array": array})
    module = ptxlab.parse(kernel(copy.work, TARGET), name="copy.ptx")
    module["k"].launch(1, 128, [map, out, source, np.array(start, np.int32), copy.bytes], device=device)
    return out.tobytes(), array.tobytes()


def compare_copies(count: int, seed: int, other: str) -> Counter[str]:
    """How many copies of each kind are equal on both devices, and how many are not."""
    found: Counter[str] = Counter()
    for number, copy in enumerate(copies(count, seed)):
        is_equal = launch(copy, "cpu") == launch(copy, other)
        kind = f"{'im2col' if copy.map.pixels else 'tile'} {'load' if copy.bytes else 'store'}"
        found[f"{kind}{' interleaved' if copy.map.interleave else ''}"] += 1
        found["different"] += not is_equal
        if not is_equal:
            print(f"copy {number} differs: {fields_of(copy.map)} at {copy.coordinates}, {copy.offsets}\n{copy.work}")
    return found


def fields_of(map: TensorMap) -> dict[str, Any]:
    """A map without its array."""
    return {name: value for name, value in vars(map).items() if name not in ("array", "offset")}


def compare_encodings(count: int, seed: int, other: str) -> tuple[int, list[list[Any]]]:
    """How many maps the driver encodes otherwise, and some of all: fields, address, bytes."""
    from contextlib import nullcontext

    from ptxlab.gpu.driver import current
    from ptxlab.gpu.tensor_maps import encode

    r, different, sample = random.Random(seed), 0, []
    for number in range(count):
        map, address = draw_map(r, None, small=False), r.randrange(1 << 47) & ~31
        ours = map.encode(address)
        with nullcontext() if other == "cpu" else current(0):
            theirs = ours if other == "cpu" else encode(map, address)
        different += ours != theirs
        if ours != theirs:
            print(f"map {number} differs: {fields_of(map)} at {address:#x}: {ours.hex()} {theirs.hex()}")
        if number < SAMPLE:
            sample.append([fields_of(map), address, theirs.hex()])
    return different, sample


# tensormap.replace, as field, operands, and the values of registers.
REPLACEMENTS = (
    ("global_address.SPACE.b1024.b64 [%rd1], %rd2", (0, (1 << 64) - 1, 0x7F1234567010)),
    ("rank.SPACE.b1024.b32 [%rd1], %r1", (*range(9), 0xFFFFFFFF)),
    *((f"global_stride.SPACE.b1024.b64 [%rd1], {at}, %rd2", (0, (1 << 64) - 1, 1 << 38, 272)) for at in range(5)),
    *(
        (f"{field}.SPACE.b1024.b32 [%rd1], {at}, %r1", (0, 1, 7, 8, 9, 256, 257, 0xFFFFFFFF))
        for at in range(5)
        for field in ("box_dim", "global_dim", "element_stride")
    ),
    *(
        (f"{field}.SPACE.b1024.b32 [%rd1], {value}", (0,))
        for field, most in (("elemtype", 13), ("interleave_layout", 3), ("swizzle_mode", 4), ("fill_mode", 2))
        for value in range(most)
    ),
)
REPLACE = """.version 8.3
.target sm_90a
.address_size 64
.entry k(.param .u64 map, .param .u64 value) {{
    .reg .b64 %rd<3>; .reg .b32 %r<2>;
    ld.param.u64 %rd1, [map];
    ld.param.u64 %rd2, [value];
    cvt.u32.u64 %r1, %rd2;
    tensormap.replace.tile.{};
    ret;
}}"""


def compare_replacements(other: str) -> tuple[int, int]:
    """How many replacements were compared, and how many differ."""
    bases = [bytes(128), b"\xff" * 128, draw_map(random.Random(1), None, small=False).encode(1 << 40)]
    compared = different = 0
    for field, values in REPLACEMENTS:
        module = ptxlab.parse(REPLACE.format(field.replace("SPACE", "global")), name="replace.ptx")
        for value in values:
            for base in bases:
                maps = [np.frombuffer(base, np.uint8).copy() for _ in range(2)]
                for map, device in zip(maps, ("cpu", other), strict=True):
                    module["k"].launch(1, 1, [map, value], device=device)
                compared += 1
                different += maps[0].tobytes() != maps[1].tobytes()
    return compared, different


STALE = """.version 8.3
.target sm_90a
.address_size 64
.entry k(.param .u64 map, .param .u64 other, .param .u64 out) {{
    .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p1;
    .shared .align 128 .b8 box[64];
    .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [map];
    ld.param.u64 %rd2, [other];
    ld.param.u64 %rd3, [out];
    mov.u32 %r1, box;
    mov.u32 %r2, full;
    mov.u32 %r3, 0;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async;
    {0}
    tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;
    {2}
    {1}
    ret;
}}"""
USE = """mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
    cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {{%r3}}], [%r2];
wait{0}:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], {0};
    @!%p1 bra wait{0};
    ld.shared.u32 %r4, [%r1];
    st.global.u32 [%rd3+{1}], %r4;"""
FENCES = {
    "with its fences": "fence.proxy.tensormap::generic.release.gpu; "
    "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;",
    "with a fence between threads": "fence.acq_rel.gpu;",
}


def use_changed_maps(times: int) -> dict[str, int]:
    """How often a copy by a map that was changed after another copy has read what the changed map says."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    found = {}
    for name, fences in FENCES.items():
        module = ptxlab.parse(STALE.format(USE.format(0, 0), USE.format(1, 4), fences), name="stale.ptx")
        found[name] = 0
        for _ in range(times):
            one, two = (torch.full((64,), value, dtype=torch.int32, device="cuda") for value in (1, 2))
            fields: dict[str, Any] = {"array": None, "offset": 0, "type": "u32", "sizes": (64,), "strides": ()}
            how = {"box": (16,), "steps": (1,), "swizzle": None, "l2_promotion": None, "fill": "zeros"}
            encoded = bytearray(TensorMap(**fields, **how).encode(one.data_ptr()))  # type: ignore[arg-type]
            map = torch.frombuffer(encoded, dtype=torch.uint8).cuda()
            out = torch.zeros(2, dtype=torch.int32, device="cuda")
            module["k"].launch(1, 1, [map, two.data_ptr(), out], device="cuda")
            found[name] += out.tolist() == [1, 2]
    return found


def main() -> int:
    """Compare, print what differs, and keep the evidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maps", type=int, default=2000)
    parser.add_argument("--copies", type=int, default=300)
    parser.add_argument("--uses", type=int, default=200, help="of a map that is changed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--other", default="cuda", help="what the emulator is compared with; `cpu` tries the program")
    parser.add_argument("--commit", default="", help="what is measured, where there is no git to ask")
    parser.add_argument("--evidence", action="store_true", help="write evidence/tensor_maps.json")
    parser.add_argument("--output", type=Path, default=ROOT / "evidence" / "tensor_maps.json")
    options = parser.parse_args()
    different, sample = compare_encodings(options.maps, options.seed, options.other)
    replacements = compare_replacements(options.other)
    moved = compare_copies(options.copies, options.seed, options.other)
    changed = use_changed_maps(options.uses) if options.other == "cuda" else {}
    print(f"{options.maps} maps, {different} differ; {replacements[0]} replacements, {replacements[1]} differ; "
          f"copies: {dict(moved)}; changed maps: {changed}")  # fmt: skip
    if options.evidence:
        write(options, {
            "maps": {"compared": options.maps, "different": different},
            "replacements": dict(zip(("compared", "different"), replacements, strict=True)),
            "copies": {"compared": options.copies, **moved},
            "changed maps that copies saw": {"uses": options.uses, **changed},
        }, sample)  # fmt: skip
    return 1 if different or replacements[1] or moved["different"] else 0


def write(options: argparse.Namespace, found: dict[str, Any], sample: list[list[Any]]) -> None:
    """Keep what was measured, and the bytes of some maps, one line each."""
    from ptxlab.gpu.hardware import driver_release

    known = gpu.devices()
    ask = ["git", "rev-parse", "HEAD"]
    commit = options.commit or subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    head = {
        "command": "python -m tests.gpu.tensor_maps",
        "options": {name: getattr(options, name) for name in ("maps", "copies", "uses", "seed")},
        "gpu": known[0].name if known else None,
        "driver": driver_release() if known else None,
        "commit": commit,
        "date": date.today().isoformat(),
        **found,
    }
    lines = ",\n".join(f"  {json.dumps(row)}" for row in sample)
    text = json.dumps(head, indent=1)[:-2] + f',\n "encodings": [\n{lines}\n ]\n}}\n'
    json.loads(text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
