"""`torch.distributed` and symmetric memory for ranks that are threads of one process.

A collective of `torch.distributed` waits for what was launched, as NCCL's kernels do on a stream, and is computed by
torch on the host. Symmetric memory is memory of the node, by whose addresses kernels reach their peers; its barriers
and signals are kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from ptxlab import ir
from ptxlab.device.arrays import Tensor
from ptxlab.frameworks.ranks.symmetric_operators import SymmetricOperators
from ptxlab.isa.units.multicast_unit import MOST_REPLICAS
from ptxlab.syntax import parse

if TYPE_CHECKING:
    from ptxlab.frameworks.ranks.session import Ranks
    from ptxlab.frameworks.ranks.streams import Event

PAD_WORDS = 2048  # of a signal pad, 32 bits each
_EVERY, _NONE = 0xFFFF_FFFF, 0xFFFF_FFFE
# A thread for each peer: it sets a word of the peer's signal pad once that is 0, and clears its own once that is 1.
_SIGNAL = """.version 7.0
.target sm_70
.address_size 64
.visible .entry signal(.param .u64 pads, .param .u32 rank, .param .u32 ranks, .param .u32 channel, .param .u32 to,
    .param .u32 from)
{
    .reg .pred %p, %q;
    .reg .b32 %peer, %rank, %ranks, %at, %chosen, %seen;
    .reg .b64 %pads, %pad, %offset;
    mov.u32 %peer, %tid.x;
    ld.param.u32 %rank, [rank];
    ld.param.u32 %ranks, [ranks];
    ld.param.u64 %pads, [pads];
    setp.eq.u32 %p, %peer, %rank;
    @%p ret;
    ld.param.u32 %at, [channel];
    mul.lo.u32 %at, %at, %ranks;
    ld.param.u32 %chosen, [to];
    setp.ne.u32 %p, %chosen, 0xffffffff;
    setp.ne.and.u32 %q, %chosen, %peer, %p;
    @%q bra receive;
    mad.wide.u32 %offset, %peer, 8, %pads;
    ld.global.u64 %pad, [%offset];
    add.u32 %seen, %at, %rank;
    mad.wide.u32 %pad, %seen, 4, %pad;
put:
    atom.release.sys.global.cas.b32 %seen, [%pad], 0, 1;
    setp.ne.u32 %p, %seen, 0;
    @%p bra put;
receive:
    ld.param.u32 %chosen, [from];
    setp.ne.u32 %p, %chosen, 0xffffffff;
    setp.ne.and.u32 %q, %chosen, %peer, %p;
    @%q ret;
    mad.wide.u32 %offset, %rank, 8, %pads;
    ld.global.u64 %pad, [%offset];
    add.u32 %seen, %at, %peer;
    mad.wide.u32 %pad, %seen, 4, %pad;
wait:
    atom.acquire.sys.global.cas.b32 %seen, [%pad], 1, 0;
    setp.ne.u32 %p, %seen, 1;
    @%p bra wait;
    ret;
}
"""


@cache
def _signal() -> ir.Function:
    return parse(_SIGNAL, "signal.ptx")["signal"]


class Group:
    """Some of the ranks: what `torch.distributed` calls a process group."""

    def __init__(self, ranks: Ranks, members: Sequence[int], name: str) -> None:
        self._ranks, self.members, self.group_name = ranks, tuple(members), name
        self._given: list[
            dict[int, tuple[str, Any, Any]]
        ] = []  # of each collective, by rank, with a point of its stream
        self._entered = dict.fromkeys(members, 0)

    def rank(self) -> int:
        """The number of the rank that asks, in this group; -1 if it is not in it."""
        current = self._ranks.turns.rank
        return self.members.index(current) if current in self.members else -1

    def size(self) -> int:
        """How many ranks there are."""
        return len(self.members)

    def exchange(self, name: str, value: Any = None) -> list[Any]:
        """What all ranks have given, once all have: the same collective on each."""
        self._ranks.wait()
        current = self._ranks.turns.rank
        if not self._ranks.turns.is_rank:
            raise RuntimeError(f"`{name}` outside of a rank: `ranks.run(function)` calls a function on each of them")
        number, self._entered[current] = self._entered[current], self._entered[current] + 1
        if number == len(self._given):
            self._given.append({})
        given = self._given[number]
        for other, (what, _, _) in given.items():
            if what != name:
                raise RuntimeError(f"rank {current} is in `{name}` while rank {other} is in `{what}`")
        stream = self._ranks.current_stream()
        given[current] = name, value, stream.record_event()
        if len(given) < len(self.members):
            self._ranks.turns.wait(lambda: len(given) == len(self.members), f"`{name}`")
        for _, _, point in given.values():
            stream.wait_event(point)
        return [given[member][1] for member in self.members]


class _Work:
    """A collective, or a message that was sent; `wait` has the current stream wait for it."""

    def __init__(self, point: Event | None = None) -> None:
        self._point = point

    def wait(self, *_: object) -> bool:
        if self._point is not None:
            self._point.wait()
        return True

    def is_completed(self) -> bool:
        return True


class _Receipt(_Work):
    """A message that is received once it is waited for."""

    def __init__(self, receive: Callable[[], object]) -> None:
        super().__init__()
        self._receive: Callable[[], object] | None = receive

    def wait(self, *_: object) -> bool:
        receive, self._receive = self._receive, None
        if receive is not None:
            receive()
        return True

    def is_completed(self) -> bool:
        return self._receive is None


@dataclass(frozen=True)
class Transfer:
    """One of several messages that are sent and received together: `torch.distributed.P2POp`."""

    op: Callable[..., Any]
    tensor: Tensor
    peer: int
    group: Group | str | None = None
    tag: int = 0


class Handle:
    """Symmetric memory of one rank: the memory of all ranks, and their signal pads."""

    def __init__(self, group: Group, ranks: Ranks, parts: Sequence[tuple[Any, Any]]) -> None:
        torch = import_module("torch")
        self._group, self._ranks = group, ranks
        self._buffers, self._pads = [part[0] for part in parts], [part[1] for part in parts]
        self.rank, self.world_size = group.rank(), group.size()
        self.buffer_size, self.signal_pad_size = self._buffers[0].nbytes, 4 * PAD_WORDS
        self.buffer_ptrs, self.signal_pad_ptrs = (
            [one.data_ptr() for one in each] for each in (self._buffers, self._pads)
        )
        tables = self.buffer_ptrs, self.signal_pad_ptrs
        self._tables = [torch.tensor(one, dtype=torch.int64, device="cuda") for one in tables]
        self.buffer_ptrs_dev, self.signal_pad_ptrs_dev = (one.data_ptr() for one in self._tables)
        has_multicast = self.world_size <= MOST_REPLICAS
        self.multicast_ptr = ranks.multicast(self.buffer_ptrs, self.buffer_size) if has_multicast else 0

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: object, storage_offset: int = 0) -> Any:
        """The memory of a rank, as a tensor."""
        return _part(self._buffers[rank], sizes, dtype, storage_offset)

    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: object = None, storage_offset: int = 0
    ) -> Any:
        """The signal pad of a rank, as a tensor."""
        torch = import_module("torch")
        return _part(self._pads[rank], sizes or (PAD_WORDS,), dtype or torch.uint32, storage_offset)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Have the stream wait for all ranks."""
        self._launch(channel, _EVERY, _EVERY)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Signal another rank, by the stream."""
        self._launch(channel, dst_rank, _NONE)

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Have the stream wait for the signal of another rank."""
        self._launch(channel, _NONE, src_rank)

    def stream_write_value32(self, tensor: Tensor, offset: int, val: int) -> None:
        """Write a word of a tensor that kernels of all ranks may wait for, on the current stream."""
        import_module("torch").ops.symm_mem.stream_write_value32_(tensor, offset, val)

    def memset32(self, tensor: Tensor, offset: int, val: int, count: int = 1) -> Any:
        """Set words of a tensor, on the current stream."""
        return import_module("torch").ops.symm_mem.memset32_(tensor, offset, val, count)

    def _launch(self, channel: int, to: int, source: int) -> None:
        args = [self.signal_pad_ptrs_dev.to_bytes(8, "little"), self.rank, self.world_size, channel, to, source]
        self._ranks.launch_on_stream(lambda stream: stream.launch(_signal(), 1, self.world_size, args), self)


def _part(whole: Tensor, sizes: Sequence[int], dtype: object, offset: int) -> Any:
    torch = import_module("torch")
    count = 1
    for size in sizes:
        count *= size
    return whole.view(torch.uint8).view(-1).view(dtype)[offset : offset + count].view(*sizes)


class Distributed:
    """What programs see of `torch.distributed` while ranks are emulated."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = self._ranks = ranks
        self._handles: dict[tuple[int, int, str], Handle] = {}  # by rank, address of symmetric memory, and group
        self._allocated: set[int] = set()  # addresses of symmetric memory
        self.world = Group(ranks, range(len(ranks.node)), "0")
        self._groups: dict[tuple[str, int], Group] = {}
        self._made: dict[int, int] = {}  # how many groups each rank has made
        self._is_open: set[int] = set()
        self._workspaces: dict[tuple[int, str], Any] = {}  # by rank and group
        self._rendezvous: Callable[[Any, Any], Handle]
        self._sent: dict[tuple[int, int, int], list[Any]] = {}  # sent and not received: from, to, and the tag

    @contextmanager
    def installed(self) -> Iterator[None]:
        """With functions of torch replaced, where it is imported."""
        if "torch" not in sys.modules:
            yield
            return
        distributed = import_module("torch.distributed")
        symmetric = import_module("torch.distributed._symmetric_memory")
        with ExitStack() as stack:
            for module, functions in ((distributed, self._collectives()), (symmetric, self._symmetric())):
                for name, function in functions.items():
                    stack.enter_context(patch.object(module, name, function, create=True))
            own = getattr(symmetric, "_SymmetricMemory", None)  # which programs call, too
            for name, function in self._own_symmetric().items() if own is not None else ():
                stack.enter_context(patch.object(own, name, staticmethod(function)))
            operators = import_module("torch").ops
            stack.enter_context(patch.object(operators, "symm_mem", SymmetricOperators(self), create=True))
            yield

    def _group(self, group: Group | str | None) -> Group:
        if group is None:
            return self.world
        if isinstance(group, str):
            return next(one for one in (self.world, *self._groups.values()) if one.group_name == group)
        assert isinstance(group, Group)
        return group

    def _new_group(self, ranks: Sequence[int] | None = None, *_: object, **__: object) -> Group:
        rank = self._ranks.turns.rank
        number = self._made[rank] = self._made.get(rank, 0) + 1
        members = tuple(range(len(self._ranks.node)) if ranks is None else sorted(ranks))
        return self._groups.setdefault((str(members), number), Group(self._ranks, members, f"{number}:{members}"))

    def refuse_unreceived(self) -> None:
        """Raise what was sent and never received: NCCL would wait for that."""
        for (source, to, _), left in self._sent.items():
            if left:
                raise RuntimeError(f"rank {source} has sent what rank {to} did not receive: {len(left)} in all")

    def _messages(self) -> dict[str, object]:
        """Sending from one rank to another; `dst` and `src` are ranks of the whole node."""
        turns = self._ranks.turns

        def send(tensor: Tensor, dst: int, group: Group | str | None = None, tag: int = 0) -> None:
            if not 0 <= dst < turns.count or dst == turns.rank:
                raise ValueError(f"rank {turns.rank} sends to rank {dst}, which is not another one")
            self._ranks.wait()
            with self._ranks.within("send"):
                message = tensor.clone(), self._ranks.current_stream().record_event()
            self._sent.setdefault((turns.rank, dst, tag), []).append(message)

        def recv(tensor: Tensor, src: int | None = None, group: Group | str | None = None, tag: int = 0) -> int:
            self._ranks.wait()
            places = [(one, turns.rank, tag) for one in (range(turns.count) if src is None else (src,))]

            def sent() -> list[tuple[int, int, int]]:
                return [place for place in places if self._sent.get(place)]

            if not sent():
                turns.wait(lambda: bool(sent()), f"`recv` from {'any rank' if src is None else f'rank {src}'}")
            source = sent()[0]
            message, point = self._sent[source].pop(0)
            point.wait()
            if message.numel() != tensor.numel() or message.dtype != tensor.dtype:
                raise RuntimeError(
                    f"rank {source[0]} sends {message.numel()} of {message.dtype}, "
                    f"and rank {turns.rank} receives {tensor.numel()} of {tensor.dtype}"
                )
            with self._ranks.within("recv"):
                tensor.copy_(message.view_as(tensor))
            return source[0]

        def isend(tensor: Tensor, dst: int, group: Group | str | None = None, tag: int = 0) -> _Work:
            send(tensor, dst, group, tag)
            return _Work()

        def irecv(tensor: Tensor, src: int | None = None, group: Group | str | None = None, tag: int = 0) -> _Work:
            return _Receipt(lambda: recv(tensor, src, group, tag))

        def batch(transfers: Sequence[Transfer]) -> list[_Work]:
            return [one.op(one.tensor, one.peer, one.group, one.tag) for one in transfers]

        own: dict[str, object] = {"send": send, "recv": recv, "isend": isend, "irecv": irecv}
        return {**own, "batch_isend_irecv": batch, "P2POp": Transfer}

    def _collectives(self) -> dict[str, object]:
        torch = import_module("torch")
        distributed = import_module("torch.distributed")
        kinds = distributed.ReduceOp

        def total(values: Sequence[Tensor], op: object) -> Any:
            every = torch.stack(list(values))
            if op in (kinds.SUM, kinds.AVG):
                found = every.sum(0)
                return found / len(values) if op == kinds.AVG else found.to(every.dtype)
            ways = {kinds.MAX: every.amax, kinds.MIN: every.amin, kinds.PRODUCT: every.prod}
            if op not in ways:
                raise NotImplementedError(f"{op} is not there; SUM, AVG, MAX, MIN and PRODUCT are")
            return ways[op](0)

        def collective(function: Callable[..., None]) -> Callable[..., Any]:
            name = function.__name__

            def called(
                *args: object, group: Group | str | None = None, async_op: bool = False, **named: object
            ) -> _Work | None:
                with self._ranks.communicating(name) as point:
                    function(self._group(group), name, *args, **named)
                if async_op:
                    self._ranks.history.is_needed = True
                    return _Work(point)
                point.wait()
                return None

            return called

        def all_reduce(group: Group, name: str, tensor: Tensor, op: object = kinds.SUM) -> None:
            tensor.copy_(total(group.exchange(name, tensor.clone()), op))

        def all_gather(group: Group, name: str, tensor_list: Sequence[Tensor], tensor: Tensor) -> None:
            for to, value in zip(tensor_list, group.exchange(name, tensor.clone()), strict=True):
                to.copy_(value)

        def all_gather_into_tensor(group: Group, name: str, output_tensor: Tensor, input_tensor: Tensor) -> None:
            values = group.exchange(name, input_tensor.clone())
            output_tensor.copy_(torch.cat([one.reshape(-1) for one in values]).view_as(output_tensor))

        def reduce_scatter_tensor(
            group: Group, name: str, output: Tensor, input: Tensor, op: object = kinds.SUM
        ) -> None:
            parts = total(group.exchange(name, input.clone()), op).reshape(group.size(), -1)
            output.copy_(parts[group.rank()].view_as(output))

        def reduce_scatter(
            group: Group, name: str, output: Tensor, input_list: Sequence[Tensor], op: object = kinds.SUM
        ) -> None:
            values = group.exchange(name, [one.clone() for one in input_list])
            output.copy_(total([one[group.rank()] for one in values], op))

        def all_to_all(
            group: Group, name: str, output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor]
        ) -> None:
            values = group.exchange(name, [one.clone() for one in input_tensor_list])
            for to, value in zip(output_tensor_list, values, strict=True):
                to.copy_(value[group.rank()])

        def all_to_all_single(
            group: Group,
            name: str,
            output: Tensor,
            input: Tensor,
            output_split_sizes: Sequence[int] | None = None,
            input_split_sizes: Sequence[int] | None = None,
        ) -> None:
            parts = input.clone().split(input_split_sizes or len(input) // group.size())
            output.copy_(torch.cat([one[group.rank()] for one in group.exchange(name, parts)]))

        def broadcast(group: Group, name: str, tensor: Tensor, src: int = 0) -> None:
            tensor.copy_(group.exchange(name, tensor.clone())[group.members.index(src)])

        def all_gather_object(group: Group, name: str, object_list: list[object], obj: object) -> None:
            object_list[:] = group.exchange(name, obj)

        def broadcast_object_list(
            group: Group, name: str, object_list: list[object], src: int = 0, **_: object
        ) -> None:
            object_list[:] = group.exchange(name, list(object_list))[group.members.index(src)]

        def barrier(group: Group, name: str, **_: object) -> None:
            group.exchange(name)

        made: tuple[Callable[..., None], ...] = (
            all_reduce, all_gather, all_gather_into_tensor, reduce_scatter_tensor, reduce_scatter, all_to_all,
            all_to_all_single, broadcast, all_gather_object, broadcast_object_list, barrier,
        )  # fmt: skip
        return {function.__name__: collective(function) for function in made} | {
            "init_process_group": lambda *_, **__: self._is_open.add(self._ranks.turns.rank),
            "destroy_process_group": lambda group=None: self._is_open.discard(self._ranks.turns.rank),
            "is_initialized": lambda: self._ranks.turns.rank in self._is_open,
            "is_available": lambda: True,
            "get_rank": lambda group=None: self._group(group).rank(),
            "get_world_size": lambda group=None: self._group(group).size(),
            "get_backend": lambda group=None: "nccl",
            "new_group": self._new_group,
            **self._messages(),
            "group": SimpleNamespace(WORLD=self.world),
        }

    def handle_of(self, name: str, tensor: Tensor, group: str) -> Handle:
        """The symmetric memory that a tensor is in, for an operator of that name."""
        if tensor.untyped_storage().data_ptr() not in self._allocated:
            raise RuntimeError(f"{name}: input must be symmetric memory, of `symm_mem.empty`")
        found: Handle = self._rendezvous(tensor, group)
        return found

    def _own_symmetric(self) -> dict[str, Callable[..., Any]]:
        """What programs call of torch's own class `_SymmetricMemory`."""
        functions: dict[str, Any] = self._symmetric()

        def empty_strided_p2p(
            size: Sequence[int], stride: Sequence[int], dtype: object, *_: object, **__: object
        ) -> Any:
            made = functions["empty"](tuple(size), dtype=dtype)
            if tuple(stride) != tuple(made.stride()):
                raise NotImplementedError(f"symmetric memory of strides {tuple(stride)}, which is not contiguous")
            return made

        def rendezvous(tensor: Tensor, group_name: str | None = None) -> Handle:
            return self._rendezvous(tensor, group_name)

        return {"empty_strided_p2p": empty_strided_p2p, "rendezvous": rendezvous}

    def _symmetric(self) -> dict[str, object]:
        torch = import_module("torch")

        def empty(*size: Any, dtype: object = None, device: Any = None) -> Any:
            sizes = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
            made = torch.zeros(tuple(sizes), dtype=dtype, device="cuda")
            made.data_ptr()  # it is of the rank that allocates it
            self._allocated.add(made.untyped_storage().data_ptr())
            return made

        def rendezvous(tensor: Tensor, group: Group | str | None = None) -> Handle:
            chosen = self._group(group)
            key = self._ranks.turns.rank, tensor.untyped_storage().data_ptr(), chosen.group_name
            if key not in self._handles:
                pad = torch.zeros(PAD_WORDS, dtype=torch.int32, device="cuda")
                pad.data_ptr()
                parts = chosen.exchange("rendezvous", (tensor, pad))
                if len({one.nbytes for one, _ in parts}) > 1:
                    raise RuntimeError(
                        f"symmetric memory of {parts[0][0].nbytes} bytes on rank 0, and others on other ranks"
                    )
                self._handles[key] = Handle(chosen, self._ranks, parts)
            return self._handles[key]

        def get_symm_mem_workspace(group_name: str, min_size: int) -> Handle:
            key = self._ranks.turns.rank, group_name
            if key not in self._workspaces or self._workspaces[key].nbytes < min_size:
                self._workspaces[key] = empty(min_size, dtype=torch.uint8)
            return rendezvous(self._workspaces[key], group_name)

        self._rendezvous = rendezvous
        return {
            "get_symm_mem_workspace": get_symm_mem_workspace,
            "_get_backend_stream": lambda priority=0: self._ranks.backend_stream(),
            "empty": empty,
            "rendezvous": rendezvous,
            "enable_symm_mem_for_group": lambda group_name: None,
            "is_symm_mem_enabled_for_group": lambda group_name: True,
        }
