"""The parameters of the kernel: the size of a tile of D, the ring of stages, the clusters, and where operands are."""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.author import Scalar, b16
from ptxlab.estimate.hardware import sms_in_clusters
from ptxlab.kernels.parts.block_sums import Parts
from ptxlab.kernels.parts.operands import LINE, STRIPE, Operand, padded
from ptxlab.kernels.parts.residuals import RingBoxes
from ptxlab.kernels.parts.tile_stores import Boxes

BLOCKS = 132  # as many as an H200 has SMs


@dataclass(frozen=True)
class Layout:
    """How matrices are in memory: operands along k or across it, and whether rows of D are multiples of 16 bytes."""

    left_along_k: bool = True
    right_along_k: bool = True
    aligned: bool = True
    element: type[Scalar] = b16  # of both operands
    out_size: int = 2  # bytes of an element of D


@dataclass(frozen=True)
class Shape:
    """A tile of D has 64 rows for each of `tall` MMAs of `groups` warpgroups, and `columns` columns."""

    groups: int = 2
    columns: int = 256
    stages: int = 3
    tall: int = 1
    raster: int = 12  # rows of tiles that are computed at a time
    cluster: int = 1  # blocks that share operands by multicast: the columns', those that are one below the other
    beside: int = 1  # blocks of a cluster that are side by side, and share the rows' operand: a divisor of `cluster`
    split_k: int = 1  # blocks that compute a tile together, each a part of k
    clustered: bool = True  # these are a cluster; else they exchange results through global memory
    swap_ab: bool = False  # D is stored transposed: the operands are given in the other order
    occupancy: int = 1  # blocks that an SM has at a time
    buffers: int = 0  # boxes of D that a warpgroup has space for; 0: for all of a tile
    box: int = 0  # columns of a box of D, as `Boxes.box`
    even: bool = False  # as few blocks as compute all tiles in the same number of rounds
    span: int = 64  # columns of a box of the right operand, if it is not along k: 64, 32 or 16
    keep: tuple[str, str] = ("", "")  # what L2 does with each operand, as `Operand.keep` says
    pingpong: bool = False  # warpgroups have tiles of their own, in turns: one multiplies while the other stores
    lead: int = 0  # K tiles by which the first of two warpgroups is ahead, so that both do not store at the same time
    early: int = 0  # K tiles that are brought to the L2 cache while the kernel before is still running
    spans: int = 0  # of each warp, that a timeline records
    fresh: int = 0  # MMAs whose results are added to sums in other registers, and need so many sets of their own
    unroll: int = 0  # K tiles after which all of these have been added; 0: as many as there are sets

    def __post_init__(self) -> None:
        """Refuse what would wait forever: a warpgroup waits for a K tile whose stage it has not released yet."""
        if self.lead and (self.groups != 2 or self.pingpong or self.fresh):
            raise ValueError(f"`lead` is {self.lead}: it is for two warpgroups that multiply the rows of one tile")
        held = self.fresh or max(2, self.lead + 1)
        if self.stages < held:
            ahead = f" with a `lead` of {self.lead}" if self.lead else ""
            raise ValueError(f"`stages` is {self.stages}: {held} K tiles are held at a time{ahead}")

    @property
    def rows(self) -> int:
        """Rows of a tile."""
        return STRIPE * self.tall * self.readers

    @property
    def covered(self) -> tuple[int, int]:
        """Rows and columns of D that blocks of a cluster compute at a time, each its own tile."""
        return self.rows * (self.cluster // self.beside), self.columns * self.beside

    @property
    def readers(self) -> int:
        """Warpgroups that read a stage."""
        return 1 if self.pingpong else self.groups

    @property
    def blocks(self) -> int:
        """Blocks of a cluster."""
        return self.cluster * (self.split_k if self.clustered else 1)

    @property
    def sms(self) -> int:
        """SMs that have blocks at a time."""
        return sms_in_clusters(self.blocks)

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and a warp for the producer, or all that give up registers together.

        Where results of MMAs are added to others, another warp brings their scales.
        """
        return self.consumers + (128 if self.registers else 64 if self.fresh else 32)

    @property
    def consumers(self) -> int:
        """Threads that multiply."""
        return 128 * self.groups

    @property
    def registers(self) -> tuple[int, int] | None:
        """Registers of a producer thread and of a consumer thread, where there are not enough for all."""
        columns = (self.tall + self.fresh) * self.columns
        if self.groups == 1 or columns <= 192:
            return None
        if self.groups == 3:
            return 32, 160
        return (24, 240) if columns > 256 and not self.fresh else (40, 232)

    @property
    def parts(self) -> Parts:
        """How blocks compute a tile together."""
        return Parts(self.groups, self.tall, self.columns, self.split_k, self.cluster)

    def boxes(self, layout: Layout) -> Boxes:
        """How a block stores its part of a tile."""
        width, size = self.parts.width, layout.out_size
        return Boxes(self.groups, self.tall, width, self.swap_ab, self.buffers, size, self.pingpong, self.box)

    def takes_residuals(self, layout: Layout) -> bool:
        """Whether a residual can come through the ring: tiles are computed as they are stored, and it has the stages.

        Warpgroups in turns have not released the last K tile when they wait for a residual.
        """
        fits = self.ring_boxes(layout).count + self.pingpong <= self.stages
        return fits and self.split_k == 1 and not self.swap_ab

    def ring_boxes(self, layout: Layout) -> RingBoxes:
        """How a tile of a residual is in stages."""
        return RingBoxes(self.rows, self.columns, self.right_rows(layout), self.stages)

    def stores_by_warps(self, boxes: Boxes) -> bool:
        """Whether warps beside the producer store tiles: each warpgroup has one, and there is memory for all boxes."""
        is_whole, warps = boxes.kept == boxes.tall * boxes.each, (self.threads - self.consumers) // 32
        return is_whole and warps > self.groups + 1 and self.split_k == 1

    def right_rows(self, layout: Layout) -> int:
        """Rows of 128 bytes that a K tile of the right operand takes."""
        if layout.right_along_k:
            return padded(self.columns, self.cluster // self.beside)
        return -(-self.columns // self.span) * self.span

    def stage_bytes(self, layout: Layout) -> int:
        """Bytes of a stage."""
        return LINE * (self.rows + self.right_rows(layout))

    def stored_from(self, stage_bytes: int) -> int:
        """Where in shared memory D is stored from: after the ring, or in it where each block has one tile only."""
        if self.split_k == 1:
            return self.stages * stage_bytes
        return -(-self.parts.received // 1024) * 1024 if self.clustered else 0

    def shared(self, layout: Layout) -> int:
        """Bytes of dynamic shared memory."""
        each = self.stage_bytes(layout)
        return max(self.stages * each, self.stored_from(each) + self.boxes(layout).bytes)

    def operands(self, layout: Layout) -> tuple[Operand, Operand]:
        """Both operands: blocks side by side in a cluster share the first one, those below each other the second."""
        return (
            Operand(
                self.rows,
                layout.left_along_k,
                self.stages,
                self.beside,
                layout.element,
                keep=self.keep[0],
                cluster=self.cluster,
            ),
            Operand(
                self.columns,
                layout.right_along_k,
                self.stages,
                self.cluster // self.beside,
                layout.element,
                keep=self.keep[1],
                span=self.span,
                cluster=self.cluster,
                apart=self.beside,
            ),
        )
