/* Means: the kind of amax that is no maximum, and what a recipe refuses of any. POL-8, POL-10. Grids: blocks.cl. */
#ifndef RUN /* elements of a run of a mean. POL-8 */
#define RUN 32u
#endif

/* The magnitudes of one run of a block added up from +0, and how many of its elements are finite. A run counts places of the
   whole block, those beyond the tensor too. POL-8 */
__kernel void mean_runs(__constant const Format* formats, uint number_type, __global const uchar* x, __constant const ulong* grid,
                        __global uint* sums, __global uint* counts, ulong runs, ulong volume, ulong n) {
    ulong item = get_global_id(0);
    if (item >= n) return;
    ulong block = quotient_of(item, runs), place = (item - block * runs) * RUN, stop = min(place + RUN, volume);
    uint axes = (uint)grid[0], sum = 0, count = 0;
    for (; place < stop; place++) {
        ulong rest = place, number = block, offset = 0;
        int exists = 1;
        for (uint axis = axes; axis-- > 0u;) {
            ulong size = grid[1 + 4 * axis], extent = grid[2 + 4 * axis], blocks = grid[3 + 4 * axis];
            ulong inside = quotient_of(rest, extent), outside = quotient_of(number, blocks);
            ulong at = (number - outside * blocks) * extent + (rest - inside * extent);
            exists = exists && at < size;
            offset += at * grid[4 + 4 * axis];
            rest = inside;
            number = outside;
        }
        uint magnitude = exists ? load_number(x, formats + number_type, offset) & MAGNITUDE : INF;
        if (magnitude >= INF) continue; /* + 0 changes no sum of magnitudes */
        sum = sum_of(sum, magnitude);
        count++;
    }
    sums[item] = sum;
    counts[item] = count;
}

/* The runs of each block added up from +0, divided by how many elements are finite; 0 of none. POL-8 */
__kernel void mean_of(__global const uint* sums, __global const uint* counts, __global uint* means, ulong runs, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint sum = 0;
    ulong count = 0;
    for (ulong run = i * runs; run < (i + 1u) * runs; run++) {
        sum = sum_of(sum, sums[run]);
        count += counts[run];
    }
    means[i] = count ? divide(sum, nearest_of(count, 0)) : 0u;
}

/* The first number, of a few, that meets a condition: 0 zero, 1 NaN, 2 finite, 3 above zero. POL-10 */
__kernel void first_amax_met(uint condition, __global const uint* largest, __global ulong* firsts, ulong n, ulong chunk) {
#define MAGNITUDE_AT (largest[i] & MAGNITUDE)
    FIRST_WHERE(condition == 0 ? MAGNITUDE_AT == 0 : condition == 1 ? MAGNITUDE_AT > INF : condition == 2 ? MAGNITUDE_AT < INF : largest[i] != 0 && largest[i] <= INF)
}
