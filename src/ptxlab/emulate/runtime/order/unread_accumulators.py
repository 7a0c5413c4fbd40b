"""Accumulators that an MMA wrote and nothing read before they are freed, or overwritten by another MMA.

What counts is what a smaller MMA would have left out: 64 lanes or more where others of the same columns are read, or 16
columns or more where others of the same MMA are. Padding to the least shape that the hardware has does not count.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD, TENSOR_SPACE
from ptxlab.emulate.abi.clocks import Access, Pages
from ptxlab.emulate.abi.findings import UNREAD
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.tensor_memory import TensorAccess
from ptxlab.emulate.runtime.order.reports import add_first
from ptxlab.emulate.runtime.order.shadow import KIND, PAGE_SHIFT, SIZE, SIZE_SHIFT, cell_in, slot_of
from ptxlab.emulate.runtime.order.tensor_happens_before import PRODUCT
from ptxlab.isa.units.tensor_memory import BAND, COLUMNS
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64

LEAST_COLUMNS = 16
BANDS = 15  # a bit for each of four


@native
def accumulator_at(pages: Pointer[Pages], lane: u32, column: u32) -> Pointer[Access]:
    """What is remembered of a TMEM word that an MMA wrote last; null if none did."""
    nothing = cast(Pointer[Access], 0)
    address: u64 = (u64(lane) * COLUMNS + u64(column)) * 4
    number: u64 = (address >> PAGE_SHIFT) + 1
    if pages.capacity == 0:
        return nothing
    page = pages.slots + slot_of(pages, number)
    if page.number != number:
        return nothing
    cell = cell_in(page, address)
    if cell.epoch == 0 or cell.flags & SIZE != PRODUCT << SIZE_SHIFT:
        return nothing
    return cell


@native
def is_read(thread: Pointer[Thread], cell: Pointer[Access]) -> boolean:
    """Whether anything has read a word since it was last written."""
    number: u32 = cell.next
    while number != 0:
        access = thread.worker.history.chained.items + number
        if access.flags & KIND == LOAD:
            return True
        number = access.next
    return False


@native
def bands_of(thread: Pointer[Thread], pages: Pointer[Pages], column: u32, read: boolean) -> u32:
    """The bands of 32 lanes, all of which an MMA wrote, that nothing has read in this column, or (`read`) something."""
    found: u32 = 0
    for band in range(4):
        first = accumulator_at(pages, band * BAND, column)
        second = accumulator_at(pages, band * BAND + BAND // 2, column)
        if cast(u64, first) == 0:
            continue
        is_any: boolean = is_read(thread, first)
        if cast(u64, second) != 0:
            is_any = is_any or is_read(thread, second)
        if is_any == read and (read or cast(u64, second) != 0):
            found = found | u32(1) << band
    return found


@native
def check_unread(thread: Pointer[Thread], block: Pointer[Block], gone: TensorAccess, instruction: u32) -> None:
    """These words are freed, or overwritten: report accumulators among them that nothing has read, others having been.

    An MMA overwrites its own tile: there only rows are reported, and columns when they are freed.
    """
    tensor = block.tensor
    if thread.worker.checks == 0 or tensor.is_read == 0 or tensor.is_masked != 0:
        return
    pages = address_of(tensor.pages)
    columns: u32 = 0
    last: u32 = 0
    for column in range(gone.column, gone.column + gone.columns):
        unread: u32 = bands_of(thread, pages, column, False)
        read: u32 = bands_of(thread, pages, column, True)
        if read != 0 and unread & (unread - 1) != 0:
            report_unread(thread, block, column, unread, 0, instruction)
            return
        if read == 0 and unread != 0:
            columns += 1
            last = column
        else:
            if columns >= LEAST_COLUMNS and gone.channel == 0:
                report_unread(thread, block, last + 1 - columns, BANDS, columns, instruction)
                return
            columns = 0
    if columns >= LEAST_COLUMNS and gone.channel == 0:
        report_unread(thread, block, last + 1 - columns, BANDS, columns, instruction)


@native
def report_unread(
    thread: Pointer[Thread], block: Pointer[Block], column: u32, bands: u32, columns: u32, instruction: u32
) -> None:
    """Note accumulators that nothing read: `bands` of lanes from a column on, or all lanes of some `columns`."""
    lane: u32 = 0
    while bands >> lane & 1 == 0:
        lane += 1
    cell = accumulator_at(address_of(block.tensor.pages), lane * BAND, column)
    if cast(u64, cell) == 0:
        return
    address: u64 = (u64(lane) * BAND * COLUMNS + u64(column)) * 4
    found = add_first(thread, UNREAD, address, columns * 4, LOAD, cell.instruction, TENSOR_SPACE)
    if cast(u64, found) == 0:
        return
    found.access.block = block.number
    found.other.instruction = instruction
    found.bands = bands
