/* Blocks on a tensor. BLK-1 to BLK-5, SCL-5.

   A grid is [axes, (size, extent, blocks, stride) each], neighbouring axes joined where the blocks allow it; no axes: one
   block holds the tensor. Indices are 64 bits wide. */
#define MOST_AXES 6 /* five extents, and all axes before them joined */

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

/* Largest finite magnitude of one part of a block: elements part * chunk and on, row-major inside the block. SCL-5, BLK-4 */
__kernel void amax(__constant const Format* formats, uint number_type, __global const uchar* x, __constant const ulong* grid,
                   __global uint* largest, ulong parts, ulong chunk, ulong n) {
    ulong item = get_global_id(0);
    if (item >= n) return;
    __constant const Format* f = formats + number_type;
    ulong block = quotient_of(item, parts), position = (item - block * parts) * chunk;
    ulong length[MOST_AXES], origin = 0, volume = 1;
    uint axes = (uint)grid[0];
    for (uint axis = axes; axis-- > 0u;) {
        ulong size = grid[1 + 4 * axis], extent = grid[2 + 4 * axis];
        ulong outer = quotient_of(block, grid[3 + 4 * axis]);
        ulong first = (block - outer * grid[3 + 4 * axis]) * extent;
        length[axis] = min(extent, size - first); /* partial blocks: the elements that exist */
        origin += first * grid[4 + 4 * axis];
        volume *= length[axis];
        block = outer;
    }
    ulong stop = min(position + chunk, volume);
    uint found = 0;
    while (position < stop) {
        ulong rest = position, offset = origin, run = 1;
        for (uint axis = axes; axis-- > 0u;) {
            ulong outer = axis ? quotient_of(rest, length[axis]) : 0, at = rest - outer * length[axis];
            if (axis == axes - 1u) run = min(length[axis] - at, stop - position);
            offset += at * grid[4 + 4 * axis];
            rest = outer;
        }
        for (ulong k = 0; k < run; k++) {
            uint magnitude = load_number(x, f, offset + k) & MAGNITUDE;
            found = max(found, magnitude < INF ? magnitude : 0u);
        }
        position += run;
    }
    largest[item] = found;
}

/* Rows of n magnitudes to rows of ceil(n / chunk): the largest of each chunk, 0 of none. Order-free, so exact. SCL-5, SCL-11 */
__kernel void fold_max(__global const uint* magnitudes, __global uint* largest, ulong n, ulong chunk, ulong pieces, ulong items) {
    ulong item = get_global_id(0);
    if (item >= items) return;
    ulong row = quotient_of(item, pieces), start = (item - row * pieces) * chunk, stop = min(start + chunk, n);
    uint found = 0;
    for (ulong i = start; i < stop; i++) found = max(found, magnitudes[row * n + i]);
    largest[item] = found;
}
