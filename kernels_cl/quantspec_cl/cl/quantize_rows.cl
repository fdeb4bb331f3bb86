/* Quantize rows: blocks along the last axis, straight to words along it. SCL-5, QNT-6, PAK-2 to PAK-5.

   A work-item takes eight blocks that follow one another, so that what is done once a block is done for eight in one vector.
   EXTENT is that of a block, a multiple of eight and of a word's fields; a tensor without blocks is cut into pieces of it. */

#define BLOCK_BYTES (EXTENT / FIELDS * WORD_SIZE)

/* One block by the generic steps, its scale's place in `saturated` a bit. */
static void whole_block(__global const Input* x, uint count, __global uchar* scales, ulong block, __global uchar* words, uint g,
                        uint bit, uint* saturated, __global const int* table) {
    uint largest = 0;
    for (uint i = 0; i < count; i++) largest = max(largest, finite_magnitude(x, i));
    uint s = block_scale(largest, scales, block, g, bit, saturated);
    for (uint first = 0; first < count; first += FIELDS) {
        uint word = 0;
        for (uint field = 0; field < FIELDS && first + field < count; field++) {
            word |= field_of(x, first + field, s, table) << (field * WIDTH);
        }
        store_code(words, WORD_SIZE, first / FIELDS, word);
    }
}

#define AHEAD (32u * LINE) /* what the codes of a work-item or two take to work out */

/* Largest magnitudes of eight blocks, NaN and Inf among them. */
static uint8 largest_of(__global const Input* x) {
    uint8 m[8];
    for (uint k = 0; k < 8; k++) {
        m[k] = load8(x, k * EXTENT) & MAGNITUDE;
        for (uint i = 0; i < EXTENT; i += LINE) FETCH(x + k * EXTENT + i + AHEAD);
        for (uint i = 8; i < EXTENT; i += 8) m[k] = larger(m[k], load8(x, k * EXTENT + i) & MAGNITUDE);
    }
    return largest_lanes(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]);
}

#define ENCODED(i) encode8(load8(x, i), (float8)s[(i) / EXTENT], (float8)inverse[(i) / EXTENT], (float8)rest[(i) / EXTENT])

/* Eight whole blocks; says which of them are outside the guard. */
static int8 eight_blocks(__global const Input* x, __global uchar* scales, ulong block, __global uchar* words, float g) {
    float s[8], inverse[8], rest[8];
    uint8 codes = 0;
#if GIVEN
    codes = load_scales(scales, block);
#endif
    Choice c = choose(largest_of(x), codes, g);
#if HAS_BLOCK && !GIVEN
    store_scales(c.code, scales, block);
#endif
    vstore8(c.s, 0, s);
    vstore8(c.inverse, 0, inverse);
    vstore8(c.rest, 0, rest);
    for (uint i = 0; i < 8 * EXTENT; i += 32) {
        store32(ENCODED(i), ENCODED(i + 8), ENCODED(i + 16), ENCODED(i + 24), words + i / FIELDS * WORD_SIZE);
    }
    return c.odd;
}

/* Lines of `blocks` blocks and `a_line` bytes of words; `eights` groups of eight blocks a line. */
__attribute__((vec_type_hint(uint8))) /* the vectors are explicit: Intel's runtime would take them apart */
__kernel void quantize_rows(__global const Input* x, __global const uint* tensor, __global const int* table, __global uchar* scales,
                            __global uchar* words, __global uchar* saturated, ulong length, ulong lines, ulong blocks,
                            ulong eights, ulong a_line) {
    ulong group = get_global_id(0), line = get_global_id(1), first = 8 * group;
    if (group >= eights || line >= lines) return;
    uint g = HAS_TENSOR ? tensor[0] : 0u, flags = 0;
    ulong left = length - first * EXTENT, block = line * blocks + first;
    x += line * length + first * EXTENT;
    words += line * a_line + first * BLOCK_BYTES;
    int8 odd = -1;
    if (left >= 8u * EXTENT && is_usable(g)) odd = eight_blocks(x, scales, block, words, as_float(g));
    if (any(odd)) {
        int outside[8];
        vstore8(odd, 0, outside);
        for (uint k = 0; k < 8u && (ulong)k * EXTENT < left; k++) {
            uint count = (uint)min(left - k * EXTENT, (ulong)EXTENT);
            if (!outside[k]) continue;
            whole_block(x + k * EXTENT, count, scales, block + k, words + k * BLOCK_BYTES, g, 1u << k, &flags, table);
        }
    }
    if (SATURABLE) saturated[line * eights + group] = (uchar)flags;
}
