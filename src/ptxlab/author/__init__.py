"""Write PTX in Python: each instruction is one call, checked on its own line.

```python
from ptxlab.author import kernel, ptx, pointer, f32, u32

@kernel(target="sm_80")
def saxpy(x: pointer[f32], y: pointer[f32], a: f32, n: u32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with ptx.when(i < n):
        y[i] = ptx.fma.rn.f32(a, x[i], y[i])

saxpy.launch(grid=4, block=256, args=[x, y, 2.0, 1000])
print(saxpy.ptx)
```
"""

from ptxlab.author.arrays import Array
from ptxlab.author.fragments import Fragment, Fragments
from ptxlab.author.functions import DeviceFunction, function
from ptxlab.author.instructions import ptx
from ptxlab.author.kernel import Kernel, kernel
from ptxlab.author.module import Module
from ptxlab.author.parameters import param
from ptxlab.author.pointer_types import generic_pointer, pointer, shared_pointer
from ptxlab.author.pointers import Pointer
from ptxlab.author.spelling import Instruction
from ptxlab.author.structures import struct, tensor_map, tensor_maps
from ptxlab.author.tiles import Tile
from ptxlab.author.values import (
    Scalar,
    b8,
    b16,
    b32,
    b64,
    b128,
    bf16,
    bf16x2,
    f16,
    f16x2,
    f32,
    f64,
    pred,
    s8,
    s16,
    s32,
    s64,
    tf32,
    u8,
    u16,
    u32,
    u64,
)
from ptxlab.isa.units.swizzle import Swizzle

__all__ = [
    "Array",
    "DeviceFunction",
    "Fragment",
    "Fragments",
    "Instruction",
    "Kernel",
    "Module",
    "Pointer",
    "Scalar",
    "Swizzle",
    "Tile",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "bf16",
    "bf16x2",
    "f16",
    "f16x2",
    "f32",
    "f64",
    "function",
    "generic_pointer",
    "kernel",
    "param",
    "pointer",
    "pred",
    "ptx",
    "s8",
    "s16",
    "s32",
    "s64",
    "shared_pointer",
    "struct",
    "tensor_map",
    "tensor_maps",
    "tf32",
    "u8",
    "u16",
    "u32",
    "u64",
]
