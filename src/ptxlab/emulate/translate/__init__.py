"""From a PTX function to machine code: LLVM IR of a kernel, compiled and cached."""
