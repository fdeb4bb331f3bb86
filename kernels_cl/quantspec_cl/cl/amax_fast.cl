/* amax of a whole tensor, fast: largest finite magnitudes of pieces, which fold_max brings together. SCL-5, BLK-5 */

static uint8 finite8(uint8 x) {
    uint8 magnitude = x & MAGNITUDE;
    return as_uint8(magnitude < INF) & magnitude;
}

/* One work-item a piece of `chunk` elements, a multiple of eight. */
__attribute__((vec_type_hint(uint8))) /* the vectors are explicit: Intel's runtime would take them apart */
__kernel void amax_pieces(__constant const Format* formats, uint number_type, __global const Input* x, __global uint* largest, ulong chunk, ulong n) {
    ulong piece = get_global_id(0), first = piece * chunk;
    if (first >= n) return;
    ulong stop = min(first + chunk, n), i = first;
    uint8 found = 0;
    for (; i + 4u * LINE <= stop; i += 4u * LINE) {
        for (uint k = 0; k < 4u * LINE; k += LINE) FETCH(x + i + k + 32u * LINE);
        for (uint k = 0; k < 4u * LINE; k += 8) found = larger(found, finite8(load8(x, i + k)));
    }
    for (; i + 8 <= stop; i += 8) found = larger(found, finite8(load8(x, i)));
    uint most = largest_lane(found);
    for (; i < stop; i++) {
        uint magnitude = load_number((__global const uchar*)x, formats + number_type, i) & MAGNITUDE;
        most = max(most, magnitude < INF ? magnitude : 0u);
    }
    largest[piece] = most;
}
