"""ACTION: the block, its two shapes, and everything that models do to them."""
