# ruff: noqa: E501
"""Kernels of Rodinia."""

from typing import Any

import numpy as np

from tests.equal.projects.stranger import RANDOM, Results, Stranger, f, i, p, scanned


def rodinia(file: str, entry: str, *rest: Any, **more: Any) -> Stranger:
    more["options"] = ("-I{root}/cuda-samples/Common",) if file.startswith("cfd") else ()
    return Stranger("rodinia", file, entry, *rest, **more)


def adjusted(delta: Any, hid: int, ly: Any, n: int, w: Any, old: Any) -> Results:
    change = np.float32(0.3) * delta * ly[:, None] + np.float32(0.3) * old
    chosen = np.broadcast_to((np.arange(17) > 0), (17, 17)) & (np.arange(17)[:, None] > 0)
    first = np.broadcast_to((np.arange(17) > 0), (17, 17)) & (np.arange(17)[:, None] == 0)
    change = np.where(first, np.float32(0.3) * delta + np.float32(0.3) * old, change)
    return {4: np.where(chosen | first, w + change, w), 5: np.where(chosen | first, change, old)}


def stepped(j: int, n: int, old: Any, new: Any, factors: Any, fluxes: Any) -> Results:
    return {3: old + fluxes * (factors / (3 + 1 - j))}


def state(variables: Any) -> tuple[Any, ...]:
    """Density, momentum, energy, the square of the speed, pressure, the speed of sound."""
    density, momentum, energy = variables[0], variables[1:4], variables[4]
    speed = (momentum * momentum).sum(0) / (density * density)
    gamma = 1.4  # of NumPy's function as the arrays are, f32 or f64
    pressure = (gamma - 1) * (energy - 0.5 * density * speed)
    return density, momentum, energy, speed, pressure, np.sqrt(gamma * pressure / density)


def step_factors(n: int, variables: Any, areas: Any, out: Any) -> Results:
    _, _, _, speed, _, sound = state(variables)
    return {3: 0.5 / (np.sqrt(areas) * (np.sqrt(speed) + sound))}


def fluxes(n: int, around: Any, normals: Any, variables: Any, fx: Any, fy: Any, fz: Any, fe: Any, out: Any) -> Results:
    density, momentum, energy, speed, _, sound = state(variables)
    total = [0.0] * 5
    for j in range(4):
        at = around[j]
        normal = normals[j::4]
        length = np.sqrt((normal * normal).sum(0))
        factor = -length * np.float32(0.2) * 0.5 * (np.sqrt(speed) + np.sqrt(speed[at]) + sound + sound[at])
        own = (density, *(momentum[n] for n in range(3)), energy)
        parts = [factor * (one - one[at]) for one in own]
        flux = (momentum, fx, fy, fz, fe)
        for number, one in enumerate(flux):
            parts[number] = parts[number] + (0.5 * normal * (one[:, at] + one)).sum(0)
        total = [x + y for x, y in zip(total, parts, strict=True)]
    return {8: np.stack(total)}


def flow(type: Any) -> list[Any]:
    around = np.stack([RANDOM.permutation(32) for _ in range(4)]).astype(np.int32)
    variables = np.concatenate([p(1, 32, type=type), f(3, 32, type=type), 9 + p(1, 32, type=type)])
    return [
        32,
        around,
        f(12, 32, type=type),
        variables.astype(type),
        *(f(3, 32, type=type) for _ in range(4)),
        f(5, 32, type=type),
    ]


def decomposed(m: Any, n: int, offset: int) -> Results:
    rest = m[16:, 16:] - m[16:, :16] @ m[:16, 16:]
    return {0: np.concatenate([m[:16], np.concatenate([m[16:, :16], rest], axis=1)])}


def weights(w: Any, n: int, partial: Any, cdf: Any, u: Any, seed: Any) -> Results:
    w = w / partial[0]
    number = np.int32(np.uint32(1103515245 * int(seed[0]) + 12345 & 0xFFFFFFFF).view(np.int32))
    first = abs(float(np.fmod(number, 2**31 - 1))) / (2**31 - 1) / n
    return {0: w, 3: scanned(w), 4: first + np.arange(n) / n}


FLOW = flow(np.float64)
RODINIA = [
    rodinia("backprop/backprop_cuda_kernel.cu", "bpnn_adjust_weights_cuda", (1, 1), (16, 16),
            [f(17), 16, f(17), 16, f(17, 17), f(17, 17)], adjusted),
    rodinia("cfd/euler3d.cu", "cuda_time_step", 1, 32, [1, 32, f(5, 32), f(5, 32), f(32), f(5, 32)], stepped),
    rodinia("cfd/pre_euler3d.cu", "cuda_compute_flux", 1, 32, flow(np.float32), fluxes),
    rodinia("cfd/pre_euler3d_double.cu", "cuda_compute_flux", 1, 32, FLOW, fluxes),
    rodinia("cfd/pre_euler3d_double.cu", "cuda_compute_step_factor", 1, 32, [32, FLOW[3], p(32, type=np.float64),
                                                                             f(32, type=np.float64)], step_factors),
    rodinia("lud/cuda/lud_kernel.cu", "lud_internal", (1, 1), (16, 16), [f(32, 32), 32, 0], decomposed),
    rodinia("particlefilter/ex_particle_CUDA_float_seq.cu", "normalize_weights_kernel", 1, 64,
            [p(50, type=np.float64), 50, p(1, type=np.float64), f(50, type=np.float64), f(50, type=np.float64), i(99, 50)],
            weights),
    rodinia("particlefilter/ex_particle_CUDA_float_seq.cu", "likelihood_kernel", 1, 32,
            [*(p(20, type=np.float64) for _ in range(5)), np.zeros(60, np.int32), i(3, 6), p(20, type=np.float64),
             i(255, 600).astype(np.uint8), *(p(20, type=np.float64) for _ in range(2)), 20, 3, 600, 1, 10, 2, i(99, 20),
             p(1, type=np.float64)], None),
    rodinia("srad/srad_v2/srad_kernel.cu", "srad_cuda_1", (2, 2), (16, 16), [*(p(32, 32) for _ in range(6)), 32, 32, 0.5],
            None, mistake="blocks at the border read rows before the first and after the last one, and do not use them"),
]  # fmt: skip
