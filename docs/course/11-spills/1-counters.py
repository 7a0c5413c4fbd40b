"""Chapter 11: an array that is indexed at run time, in registers."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, avoids_space, commented, kernel_on_page, names_on_page

WORDS = """
Each thread counts how often the digits 0 to 3 occur in its word, which has sixteen of two bits each. The
counters are an array in local memory, because the digit is its index.

Keep the four counters in four registers. A predicate decides which of them grows.
"""


def launch(random: np.random.Generator, n: int) -> Case:
    """Words, and how often each digit occurs in them."""
    x = random.integers(0, 2**32, n, dtype=np.uint32)
    digits = x[:, None] >> np.arange(0, 32, 2, dtype=np.uint32) & 3
    right = np.stack([(digits == digit).sum(axis=1) for digit in range(4)], axis=1)
    return Case(1, n, {"x": x, "y": np.full((n, 4), 99, np.uint32)}, expected={"y": right},
                mistakes={"the counters are in the opposite order": {"y": right[:, ::-1]},
                          "all sixteen digits are counted, whatever they are": {"y": np.full((n, 4), 16)}})  # fmt: skip


EXERCISE = Exercise(
    "counters in registers",
    commented(WORDS, names_on_page(__file__)["LOCAL"]),
    commented(WORDS, kernel_on_page(__file__)),
    Task("digits", launch, ({"n": 32}, {"n": 96})),
    hints=(
        "`%c0` to `%c3` are declared. Each starts at 0, and is added to if the digit is its number.",
        "`setp.eq.u32 %p, %digit, 2;` and then `@%p add.u32 %c2, %c2, 1;`, for each of the four.",
        "Remove the array and all `ld.local` and `st.local`; at the end `st.global.v4.u32 [%y], {%c0, %c1, %c2, %c3};`",
    ),
    needs=(avoids_space("local", "four values with names of their own are four registers"),),
    advice={
        "uninitialized-read": "Each counter has to start at 0.",
        "unwritten-register": "Each counter has to start at 0: `mov.u32 %c1, 0;`",
        "out-of-bounds": "A thread has sixteen bytes of y.",
        "wrong-values": "The four counters of a thread add up to 16: do yours?",
    },
)
