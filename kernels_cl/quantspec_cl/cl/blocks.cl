/* Blocks on a tensor. BLK-1 to BLK-5.

   A grid is [axes, (size, extent, blocks, stride) each], neighbouring axes joined where the blocks allow it; no axes: one
   block holds the tensor. Indices are 64 bits wide. */

/* The block of an element, both row-major. BLK-3 */
static ulong block_of(ulong i, __constant const ulong* grid) {
    ulong block = 0, blocks = 1;
    for (uint axis = (uint)grid[0]; axis-- > 0u;) {
        ulong size = grid[1 + 4 * axis], extent = grid[2 + 4 * axis];
        ulong outer = axis ? quotient_of(i, size) : 0, at = i - outer * size;
        block += (extent > 1 ? quotient_of(at, extent) : at) * blocks;
        blocks *= grid[3 + 4 * axis];
        i = outer;
    }
    return block;
}
