/* amax: the number that the scale of a block is chosen from. SCL-5, BLK-4, POL-8. Grids: blocks.cl. */
#define MOST_AXES 6 /* five extents, and all axes before them joined */

/* Kinds of amax: what is kept of what was found so far and the next element, in the order of the elements. A number takes the
   place of an equal one nowhere, so parts may be folded. SCL-5, POL-8 */
#ifndef LARGER
#define LARGER larger_finite
#endif
static uint larger_finite(uint found, uint x) {
    uint magnitude = x & MAGNITUDE;
    return max(found, magnitude < INF ? magnitude : 0u);
}
static uint larger_or_nan(uint found, uint x) { return max(found, canonical(x & MAGNITUDE)); }
static uint larger_number(uint found, uint x) { return is_nan(x) ? found : max(found, x & MAGNITUDE); }
static uint larger_signed(uint found, uint x) { return !is_nan(x) && (x & MAGNITUDE) > (found & MAGNITUDE) ? x : found; }

/* amax of one part of a block: elements part * chunk and on, row-major inside the block. SCL-5, BLK-4 */
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
        for (ulong k = 0; k < run; k++) found = LARGER(found, load_number(x, f, offset + k));
        position += run;
    }
    largest[item] = found;
}

/* Rows of n magnitudes to rows of ceil(n / chunk): amax of each chunk, 0 of none. Maxima, so exact. SCL-5, SCL-11 */
__kernel void fold_max(__global const uint* magnitudes, __global uint* largest, ulong n, ulong chunk, ulong pieces, ulong items) {
    ulong item = get_global_id(0);
    if (item >= items) return;
    ulong row = quotient_of(item, pieces), start = (item - row * pieces) * chunk, stop = min(start + chunk, n);
    uint found = 0;
    for (ulong i = start; i < stop; i++) found = LARGER(found, magnitudes[row * n + i]);
    largest[item] = found;
}
