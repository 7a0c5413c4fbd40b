"""What the emulator and GPUs share: argument packing, tensor maps, variable layout, limits."""
