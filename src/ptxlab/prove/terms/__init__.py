"""What registers hold, as exact terms of the thread, the block, the parameters and the turns of loops."""
