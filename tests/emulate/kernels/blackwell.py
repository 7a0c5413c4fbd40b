"""Cases of `blackwell`: products in tensor memory."""

import ml_dtypes
import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, same, whole


@case("blackwell", "sm_100a", synchronizes="block")
def blackwell_product(rng):
    depth = 128
    a, b = (whole(rng, -8, 9, rows, depth, type=np.float32) for rows in (128, 64))
    out = np.zeros((128, 64), np.float32)
    given = [array.astype(ml_dtypes.bfloat16).view(np.uint16) for array in (a, b)]
    return Run([Launch("blackwell_product", 1, 128, [out, *given, depth])], [same(out, a @ b.T)])
