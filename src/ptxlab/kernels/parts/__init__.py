"""What kernels of the gallery are made of: main loops, operands, tile orders, stores, rows, reductions."""
