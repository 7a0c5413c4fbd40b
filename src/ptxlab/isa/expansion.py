"""Elements of four and six bits that become bytes on their way to tensor memory (PTX ISA 9.7.16.9.1).

Sixteen of them are packed at the start of 16 bytes; the rest is padding. The manual draws what becomes of them: what
`tcgen05.mma` takes for an A in tensor memory, six bits at the bottom of a byte, four in its middle. Nothing of this was
measured for this program.
"""

from ptxlab.native import Pointer, native, u8, u32

ELEMENTS = 16  # of a chunk


@native
def expanded_word(chunk: Pointer[u8], word: u32, bits: u32) -> u32:
    """Four elements of a chunk, a byte each."""
    found: u32 = 0
    for index in range(4):
        bit: u32 = (4 * word + index) * bits
        pair: u32 = u32(chunk[bit // 8])
        if bit % 8 + bits > 8:
            pair = pair | u32(chunk[bit // 8 + 1]) << 8
        element: u32 = pair >> (bit % 8) & ((u32(1) << bits) - 1)
        found = found | (element << 2 if bits == 4 else element) << (8 * index)
    return found
