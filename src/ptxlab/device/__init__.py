"""What the emulator and GPUs share: launch options, argument packing, tensor maps, variable layout, limits, results."""
