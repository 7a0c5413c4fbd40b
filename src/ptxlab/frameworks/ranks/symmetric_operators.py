"""`torch.ops.symm_mem`: collectives on symmetric memory, as kernels that wait for their peers by signal pads.

Each is a barrier of all ranks, a kernel, and a barrier, on the current stream. torch's own kernels start with relaxed
barriers, which order nothing by the memory model; here barriers release and acquire, so that a program is not reported
for what it can't change. Elements are added in their own type, from rank 0 up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.device.arrays import Tensor
from ptxlab.syntax import parse

if TYPE_CHECKING:
    from ptxlab.frameworks.ranks.distributed import Distributed, Handle

THREADS = 256
_BLOCKS = 4  # at most
# All elements from `first` to `past`, of `offset` bytes after the start of each buffer: their sum to `out`, or, where
# that is null, to each buffer.
_REDUCE = """
.visible .entry reduce_{type}(.param .u64 buffers, .param .u32 ranks, .param .u64 offset, .param .u64 first,
    .param .u64 past, .param .u64 out)
{{
    .reg .pred %p;
    .reg .b32 %r, %s, %ranks;
    .reg .b64 %buffers, %offset, %at, %past, %out, %a, %byte, %step;
    .reg .{register} %sum, %v;
    ld.param.u64 %buffers, [buffers];
    ld.param.u32 %ranks, [ranks];
    ld.param.u64 %offset, [offset];
    ld.param.u64 %at, [first];
    ld.param.u64 %past, [past];
    ld.param.u64 %out, [out];
    mov.u32 %r, %ctaid.x;
    mov.u32 %s, %ntid.x;
    mul.wide.u32 %step, %r, %s;
    add.u64 %at, %at, %step;
    mov.u32 %r, %nctaid.x;
    mul.wide.u32 %step, %r, %s;
    mov.u32 %r, %tid.x;
    cvt.u64.u32 %a, %r;
    add.u64 %at, %at, %a;
next:
    setp.ge.u64 %p, %at, %past;
    @%p bra done;
    mad.lo.u64 %byte, %at, {size}, %offset;
    mov.{register} %sum, {zero};
    mov.u32 %r, 0;
each:
    mad.wide.u32 %a, %r, 8, %buffers;
    ld.global.u64 %a, [%a];
    add.u64 %a, %a, %byte;
    ld.global.{register} %v, [%a];
    add.rn.{type} %sum, %sum, %v;
    add.u32 %r, %r, 1;
    setp.lt.u32 %p, %r, %ranks;
    @%p bra each;
    setp.eq.u64 %p, %out, 0;
    @%p bra everywhere;
    mad.lo.u64 %a, %at, {size}, %out;
    st.global.{register} [%a], %sum;
    bra after;
everywhere:
    mov.u32 %r, 0;
write:
    mad.wide.u32 %a, %r, 8, %buffers;
    ld.global.u64 %a, [%a];
    add.u64 %a, %a, %byte;
    st.global.{register} [%a], %sum;
    add.u32 %r, %r, 1;
    setp.lt.u32 %p, %r, %ranks;
    @%p bra write;
after:
    add.u64 %at, %at, %step;
    bra next;
done:
    ret;
}}
"""
# Words from `first` to `past` by the multicast address: their sum to `out`, or, where that is null, to all.
_MULTIMEM = """
.visible .entry multimem_{type}(.param .u64 all, .param .u64 first, .param .u64 past, .param .u64 out)
{{
    .reg .pred %p;
    .reg .b32 %r, %s;
    .reg .b64 %all, %at, %past, %out, %a, %step;
    .reg .{word} %sum;
    ld.param.u64 %all, [all];
    ld.param.u64 %at, [first];
    ld.param.u64 %past, [past];
    ld.param.u64 %out, [out];
    mov.u32 %r, %ctaid.x;
    mov.u32 %s, %ntid.x;
    mul.wide.u32 %step, %r, %s;
    add.u64 %at, %at, %step;
    mov.u32 %r, %nctaid.x;
    mul.wide.u32 %step, %r, %s;
    mov.u32 %r, %tid.x;
    cvt.u64.u32 %a, %r;
    add.u64 %at, %at, %a;
next:
    setp.ge.u64 %p, %at, %past;
    @%p bra done;
    mad.lo.u64 %a, %at, 4, %all;
    multimem.ld_reduce.relaxed.sys.global.add{as} %sum, [%a];
    setp.eq.u64 %p, %out, 0;
    @%p bra everywhere;
    mad.lo.u64 %a, %at, 4, %out;
    st.global.{word} [%a], %sum;
    bra after;
everywhere:
    multimem.st.relaxed.sys.global.{vector} [%a], %sum;
after:
    add.u64 %at, %at, %step;
    bra next;
done:
    ret;
}}
"""
_WRITE = """
.visible .entry write_value(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r;
    .reg .b64 %to;
    ld.param.u64 %to, [to];
    ld.param.u32 %r, [value];
    st.release.sys.global.u32 [%to], %r;
    ret;
}
"""
_TYPES = {
    "float32": {"type": "f32", "register": "f32", "size": 4, "zero": "0f00000000", "word": "f32", "as": ".f32",
                "vector": "f32"},
    "bfloat16": {"type": "bf16", "register": "b16", "size": 2, "zero": "0", "word": "b32", "as": ".acc::f32.bf16x2",
                 "vector": "bf16x2"},
}  # fmt: skip


@cache
def _module() -> ir.Module:
    parts = [text.format(**one) for one in _TYPES.values() for text in (_REDUCE, _MULTIMEM)]
    return parse(".version 8.2\n.target sm_90\n.address_size 64\n" + "".join(parts) + _WRITE, "symm_mem.ptx")


def _address(address: int) -> bytes:
    return address.to_bytes(8, "little")


class SymmetricOperators:
    """What programs see as `torch.ops.symm_mem`."""

    def __init__(self, distributed: Distributed) -> None:
        self._distributed = distributed
        self._ranks = distributed.ranks

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"torch.ops.symm_mem.{name} is not there; {', '.join(_names())} are")

    def one_shot_all_reduce(self, input: Tensor, reduce_op: str, group_name: str) -> Any:
        """The sum of all ranks' inputs, as a new tensor: each rank reads all of them."""
        return self.one_shot_all_reduce_out(input, reduce_op, group_name, import_module("torch").empty_like(input))

    def one_shot_all_reduce_out(self, input: Tensor, reduce_op: str, group_name: str, out: Tensor) -> Any:
        """The same, to a tensor."""
        handle, offset = self._handle("one_shot_all_reduce", input, reduce_op, group_name)
        self._between_barriers(
            handle, self._reduce(handle, input, offset, 0, input.numel(), out.data_ptr()), input, out
        )
        return out

    def two_shot_all_reduce_(self, input: Tensor, reduce_op: str, group_name: str) -> Any:
        """The sum in place of all ranks' inputs: each rank adds up its part, and writes that to all of them."""
        handle, offset = self._handle("two_shot_all_reduce_", input, reduce_op, group_name)
        first, past = _part(input.numel(), handle)
        self._between_barriers(handle, self._reduce(handle, input, offset, first, past, 0), input)
        return input

    def two_shot_all_reduce_out(self, input: Tensor, reduce_op: str, group_name: str, output: Tensor) -> Any:
        """The sum of all ranks' inputs, which are left as sums, too, to a tensor."""
        output.copy_(self.two_shot_all_reduce_(input, reduce_op, group_name))
        return output

    def multimem_all_reduce_(self, input: Tensor, reduce_op: str, group_name: str) -> Any:
        """The sum in place of all ranks' inputs, added up by the switch."""
        handle, offset = self._handle("multimem_all_reduce_", input, reduce_op, group_name)
        first, past = _part(self._words(input, offset), handle)
        self._between_barriers(handle, self._multimem(handle, input, offset, first, past, 0), input)
        return input

    def multimem_one_shot_all_reduce(self, input: Tensor, reduce_op: str, group_name: str) -> Any:
        """The sum of all ranks' inputs, added up by the switch, as a new tensor."""
        out = import_module("torch").empty_like(input)
        return self.multimem_one_shot_all_reduce_out(input, reduce_op, group_name, out)

    def multimem_one_shot_all_reduce_out(self, input: Tensor, reduce_op: str, group_name: str, out: Tensor) -> Any:
        """The same, to a tensor."""
        handle, offset = self._handle("multimem_one_shot_all_reduce", input, reduce_op, group_name)
        words = self._words(input, offset)
        self._between_barriers(handle, self._multimem(handle, input, offset, 0, words, out.data_ptr()), input, out)
        return out

    def memset32_(self, input: Tensor, offset: int, val: int, count: int) -> Any:
        """Set words of a tensor, on the current stream."""
        for at in range(offset, offset + count):
            self.stream_write_value32_(input, at, val)
        return input

    def stream_write_value32_(self, input: Tensor, offset: int, val: int) -> Any:
        """Write a word of a tensor that kernels of all ranks may wait for, on the current stream."""
        if input.element_size() != 4 or not 0 <= offset < input.numel():
            raise ValueError(f"word {offset} of a tensor of {input.numel()} elements of {input.element_size()} bytes")
        args = [_address(input.data_ptr() + 4 * offset), val & 0xFFFF_FFFF]
        self._ranks.launch_on_stream(lambda stream: stream.launch(_module()["write_value"], 1, 1, args), input)
        return input

    def _handle(self, name: str, input: Tensor, reduce_op: str, group_name: str) -> tuple[Handle, int]:
        """The symmetric memory that a tensor is in, and how many bytes after its start."""
        if reduce_op != "sum":
            raise RuntimeError(f"{name}: only sum is supported for now, not {reduce_op}")
        if _name_of(input) not in _TYPES:
            raise RuntimeError(f"{name}: only {' and '.join(_TYPES)} are supported for now, not {_name_of(input)}")
        if not input.is_contiguous():
            raise RuntimeError(f"{name}: input must be contiguous")
        handle = self._distributed.handle_of(name, input, group_name)
        return handle, input.data_ptr() - handle.buffer_ptrs[handle.rank]

    def _words(self, input: Tensor, offset: int) -> int:
        """How many words of 4 bytes the switch adds up."""
        size = int(input.numel() * input.element_size())
        if size % 4 or offset % 4:
            raise RuntimeError(f"multimem: {size} bytes at offset {offset}: both must be multiples of 4")
        return size // 4

    def _reduce(
        self, handle: Handle, input: Tensor, offset: int, first: int, past: int, out: int
    ) -> Callable[[Any], None]:
        kernel = _module()[f"reduce_{_TYPES[_name_of(input)]['type']}"]
        args = [_address(handle.buffer_ptrs_dev), handle.world_size, offset, first, past, _address(out)]
        return lambda stream: stream.launch(kernel, _blocks(past - first), THREADS, args)

    def _multimem(
        self, handle: Handle, input: Tensor, offset: int, first: int, past: int, out: int
    ) -> Callable[[Any], None]:
        if not handle.multicast_ptr:
            raise RuntimeError(f"multimem: {handle.world_size} ranks are more than have a multicast address")
        kernel = _module()[f"multimem_{_TYPES[_name_of(input)]['type']}"]
        args = [_address(handle.multicast_ptr + offset), first, past, _address(out)]
        return lambda stream: stream.launch(kernel, _blocks(past - first), THREADS, args)

    def _between_barriers(self, handle: Handle, launch: Callable[[Any], None], *tensors: object) -> None:
        handle.barrier()
        self._ranks.launch_on_stream(launch, handle, *tensors)
        handle.barrier()


def _names() -> list[str]:
    return [name for name in vars(SymmetricOperators) if not name.startswith("_")]


def _name_of(tensor: Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _part(count: int, handle: Handle) -> tuple[int, int]:
    """What a rank adds up."""
    each = -(-count // handle.world_size)
    return min(each * handle.rank, count), min(each * (handle.rank + 1), count)


def _blocks(count: int) -> int:
    return max(1, min(_BLOCKS, -(-count // THREADS)))
