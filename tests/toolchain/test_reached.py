"""PTX without what its kernels do not reach."""

from ptxlab.toolchain.reached import reached

HEAD = ".version 9.0\n.target sm_80\n\n\t// .globl\tmain\n"
EXTERNAL = ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 vprintf_param_0\n)\n;\n"
KERNEL = """\
.weak .entry k(
\t.param .u64 k_param_0
)
{
\t// begin inline asm
\t{
.reg .pred p;
}

\t// end inline asm
\tld.global.u32 %r1, [x];
\tcall f, ();
}

"""
CALLED = ".visible .func f()\n{\n\tst.shared.u32 [buffer], 0;\n}\n\n"
USED = ".global .u32 x = 3;\n.extern .shared .align 16 .b8 buffer[];\n"
END = '\t.file 1 "main.cu"\n'


def test_a_kernel_keeps_what_it_reaches() -> None:
    unused = ".global .align 1 .b8 text[2] = {1, 2};\n.weak .entry k\n(\n)\n;\n"
    main = ".visible .func main()\n{\n\tcall vprintf;\n}\n"
    text = f"{HEAD}{EXTERNAL}{unused}{USED}{main}{KERNEL}{CALLED}{END}"
    assert reached(text) == f"{HEAD}{USED}{KERNEL}{CALLED}{END}"
