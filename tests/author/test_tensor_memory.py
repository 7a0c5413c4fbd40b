"""What `ptx.tensor_memory` and `ptx.instruction_descriptor` refuse, and what they write for two blocks."""

import pytest

from ptxlab import PtxError
from ptxlab.author import kernel, ptx


def test_columns_that_no_block_can_have() -> None:
    @kernel(target="sm_100a")
    def wrong() -> None:
        ptx.tensor_memory(48, when=ptx.tid.x < 32)

    with pytest.raises(PtxError, match="48 columns can't be allocated"):
        str(wrong)


def test_a_column_that_was_not_allocated() -> None:
    @kernel(target="sm_100a")
    def wrong() -> None:
        ptx.tensor_memory(32, when=ptx.tid.x < 32).at(32)

    with pytest.raises(PtxError, match="column 32 is outside of the 32 that are allocated"):
        str(wrong)


def test_a_product_that_no_instruction_has() -> None:
    @kernel(target="sm_100a")
    def wrong() -> None:
        ptx.instruction_descriptor("f16", 96, 64, "f16")

    with pytest.raises(PtxError, match="multiplies 64 or 128 rows"):
        str(wrong)


def test_two_blocks_synchronize_by_their_cluster() -> None:
    @kernel(target="sm_100a")
    def pair() -> None:
        ptx.tensor_memory(32, when=ptx.tid.x < 32, blocks=2).free()

    text = str(pair)
    assert text.count("barrier.cluster.arrive.release.aligned;") == 2
    assert text.count("cta_group::2") == 3
    assert "bar.sync" not in text
