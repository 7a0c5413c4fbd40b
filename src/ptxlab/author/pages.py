"""The pages that `ptxlab explain` shows for what is refused in a kernel that is written in Python.

Python runs once, when the kernel is written; most of these are about what is known then and what only on the GPU.
"""

PAGES = {
    "outside-kernel": (
        "An instruction is written where no kernel is being written.\n\n"
        "It belongs in a function under `@kernel` or `@function`, or in one that these call."
    ),
    "value-needed": (
        "Python needs a value that exists only on the GPU.\n\n"
        "`if x < y:` is decided when the kernel is written; `with ptx.when(x < y):` is decided by each thread. "
        "Python's `min(x, y)` and `max(x, y)` compare, too: write `ptx.min.f32(x, y)`. A pointer knows neither its "
        "length nor whether it is null."
    ),
    "no-operator": (
        "PTX has no instruction for this operator on these types.\n\nThe help names what there is instead."
    ),
    "ambiguous-operator": (
        "An operator could mean several instructions, which give different results.\n\n"
        "Say the one: `ptx.div.rn.f32(a, b)` for `a / b`."
    ),
    "type-clash": (
        "A value of one type is used where another is needed.\n\n"
        "Nothing is converted unasked: `ptx.cvt` makes one type of another, `ptx.mov.b32(x, out=f32())` copies "
        "its bits."
    ),
    "not-an-operand": "An operand is not a register, a number or a variable.",
    "not-an-index": (
        "An index is a Python integer, or a register of type `u32`, `s32`, `u64` or `s64`; a pointer takes "
        "one, an array as many as it has dimensions."
    ),
    "lost-value": (
        "A name gets another register in the body of a loop on the GPU, and the next iteration reads the old one.\n\n"
        "`total = total + x` makes a new register each time it is written. `total.set(total + x)` or `total += x` "
        "writes into the register that the loop reads."
    ),
    "early-jump": (
        "`return`, `break` or `continue` is in a block that is executed on the GPU.\n\n"
        "Python writes the kernel once, from top to bottom: a Python jump stops the writing, not the threads. "
        "`ptx.ret()` ends the threads that get there, `ptx.leave_when(condition)` leaves a loop, and "
        "`with ptx.when(...):` skips the rest of an iteration."
    ),
    "python-error": (
        "A Python file can't be executed, so its kernels are not known.\n\n"
        "`ptxlab lsp --python` says so in an editor: the file raises an exception while it is imported or a kernel "
        "is written, or takes longer than a minute. Put what trains or measures under `if __name__ == '__main__':`."
    ),
    "missing-argument": (
        "A kernel or function is written without a compile-time argument that it needs.\n\n"
        "Parameters after `*` are compile-time arguments; without a default, they are given by "
        "`kernel.specialize(TILE=64)`, or where the function is called."
    ),
    "unused-default": (
        "A parameter of a kernel has a default value, and PTX has none.\n\n"
        "A launch passes every argument. Only compile-time arguments, after `*`, have defaults."
    ),
    "missing-type": (
        "A parameter or an element of memory is not of a PTX type.\n\n"
        "`x: pointer[f32]`, `n: u32`; what is known when the kernel is written follows `*` and has a type "
        "of Python."
    ),
    "unknown-argument": "A name is given that the kernel or the structure does not have.",
    "unknown-target": ("There is no such target.\n\nTargets are spelled as in PTX: `sm_80`, `sm_90a`, `sm_100f`."),
    "not-a-function": (
        "`@kernel` is given something other than a function.\n\n"
        'It decorates a `def`; options have names: `@kernel(target="sm_90")`.'
    ),
    "kernel-call": (
        "A kernel is called like a function.\n\n"
        "The host launches it: `saxpy.launch(grid=4, block=256, args=[...])`. What another kernel calls is a plain "
        "function, or one under `@function`."
    ),
    "illegal-return": (
        "A kernel returns a value, or a device function not as many as its annotation says.\n\n"
        "A kernel gives its results through memory. `ptx.ret()` ends a thread."
    ),
    "illegal-format": (
        "The format of `ptx.printf` has a `%` that does not start a conversion.\n\n"
        "Those of C are known: `%d`, `%u`, `%x`, `%f`, `%g`, `%c`, `%p`, `%s`, with `ll` before an integer of 64 bits; "
        "`%%` prints a `%`."
    ),
    "counted-by-python": (
        "Python counts or collects the iterations of a loop on the GPU: `enumerate(ptx.range(n))`.\n\n"
        "The body is written once, whatever `n` is, so that Python sees one round. What is counted on the GPU is a "
        "register: `count += 1`."
    ),
    "illegal-label": "The name of a label is made of letters, digits and underscores.",
    "open-loop": (
        "A block of `ptx.when`, `ptx.loop` or `ptx.range` was started and not brought to its end.\n\n"
        "`break` and `return` of Python leave it only while the kernel is written; `ptx.leave_when(p)` and "
        "`ptx.ret()` do on the GPU."
    ),
    "unopened-block": ("A block is used without `with`, and so does nothing.\n\nWrite `with ptx.when(p):`."),
    "stray-leave": "`ptx.leave_when` or `ptx.repeat_when` is not in a loop that it could leave or repeat.",
    "stray-otherwise": "`with ptx.otherwise():` does not directly follow a `with ptx.when(p):`.",
    "endless-kernel": (
        "The kernel has very many lines and does not end, or Python functions call themselves without end.\n\n"
        "A Python loop is written out turn by turn; `ptx.loop` and `ptx.range` write a loop for the GPU."
    ),
    "foreign-register": (
        "A register or an array of one kernel or function is used in another.\n\nPass it as an argument."
    ),
    "shared-register": (
        "A pointer is moved by `+=` while others count from the same register.\n\n"
        "`p = p.copy()` gives it one of its own."
    ),
    "read-only-parameter": (
        "A field of a structure in parameter memory is written.\n\nMake a structure with the new values."
    ),
    "no-fragment": "Registers of a matrix fragment are not laid out as this way to load or count them needs.",
    "no-descriptor": (
        "A tile in shared memory is not laid out as a matrix descriptor can say it.\n\n"
        "`wgmma` and `tcgen05` take rows of 32, 64 or 128 bytes with the swizzle of that name, or of 16 bytes without "
        "one. Make a wider matrix of several copies of a tile."
    ),
    "misaligned-tile": (
        "A swizzled tile in shared memory does not begin where its pattern does.\n\n"
        "Align the memory, and put only whole tiles before it."
    ),
}
