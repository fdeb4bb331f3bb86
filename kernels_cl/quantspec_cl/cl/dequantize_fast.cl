/* Dequantize straight from words. QNT-9 to QNT-11, PAK-1 to PAK-6, BLK-3.

   Three kernels: rows, where the packed axis is the innermost, so that words and numbers lie in one order, and its ends, which
   takes what is left of the rows; tiles, where it is the axis before it, so that a word's codes go to as many rows. FIELDS:
   codes that a piece of 32 bits of words holds; VECTORS: how many vectors of elements a work-item of rows takes. An outer grid
   is [axes, (size, extent, blocks, stride) each], as in blocks.cl, for what is outside the innermost one or two axes. */

/* Numbers are written past the caches where the compiler can: they are many more bytes than the words, and a line that is
   written whole need not be read first. */
#if defined(__has_builtin) && !defined(STREAM)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM(vector, address) __builtin_nontemporal_store(vector, address)
#endif
#endif
#ifndef STREAM
#define STREAM(vector, address) *(address) = (vector)
#endif

/* The block of row `i`, row-major. BLK-3 */
static ulong outer_block(ulong i, __constant const ulong* grid) {
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

/* The scales of LANES elements from `first` on, of a row whose blocks start at `base`; every extent holds whole vectors of
   elements, and is 8 * eights, or 8 << shift where that is possible. */
static Scales row_scales(__global const uchar* scales, uint g, ulong base, ulong first, uint count, ulong eights, uint shift) {
#if SCALE_KIND == NONE
    return g;
#else
#if EACH
    Scales b = 0;
    if (count == LANES) {
#if SCALE_SIZE == 1
        b = TO_UINTS(LOADED(0, scales + base + first));
#elif SCALE_SIZE == 2
        b = TO_UINTS(LOADED(0, (__global const ushort*)scales + base + first));
#else
        b = LOADED(0, (__global const uint*)scales + base + first);
#endif
    } else {
        uint part[LANES] = {0};
        for (uint i = 0; i < count; i++) part[i] = load_code(scales, SCALE_SIZE, base + first + i);
        b = LOADED(0, part);
    }
#else
    ulong group = first >> 3;
    Scales b = load_code(scales, SCALE_SIZE, base + (shift < 64u ? group >> shift : quotient_of(group, eights)));
#endif
    b = scales_of(b);
#if TENSOR
    b = effective(b, g);
#endif
    return b;
#endif
}

#define LINE 64 /* bytes */
#define ACROSS (LINE / OUT_SIZE / LANES) /* vectors of numbers in a line of memory */
#ifndef HINT
#define HINT
#endif
#define WHOLE (LANES + 1u) /* a vector of elements at a place that is a multiple of LANES */
#define TO_USHORTS VECTOR(convert_ushort)

static void store_row(__global uchar* y, ulong at, Uints r, uint count) {
#if OUT_SIZE == 4
    __global uint* place = (__global uint*)y + at;
    if (count == WHOLE) STREAM(r, (__global Uints*)place);
    else if (count == LANES) STORE(r, 0, place);
#else
    __global ushort* place = (__global ushort*)y + at;
    if (count == WHOLE) STREAM(TO_USHORTS(r), (__global VECTOR(ushort)*)place);
    else if (count == LANES) STORE(TO_USHORTS(r), 0, place);
#endif
    else {
        uint part[LANES];
        STORE(r, 0, part);
        for (uint i = 0; i < count; i++) store_code(y, OUT_SIZE, at + i, part[i]);
    }
}

/* Field i of a row whose words start at `start` (in bytes; in words where a word has bits without a code). PAK-4 */
static uint field_at(__global const uchar* words, ulong start, ulong i) {
#if WIDTH == 6
    ulong word = i / FIELDS;
    return (((__global const uint*)words)[start + word] >> ((uint)(i - word * FIELDS) * 6u)) & 63u;
#else
    return ((uint)words[start + (i * WIDTH >> 3)] >> ((uint)(i * WIDTH) & 7u)) & ((1u << WIDTH) - 1u);
#endif
}

/* Every lane's element, of so many words as a vector holds eights and fours of. */
#if LANES == 8
#define PART(type) type
#define QUARTERS 2
#define EIGHT_EACH(word) (Ints)(word)
#define FOUR_EACH(words) (Ints)((words).xxxx, (words).yyyy)
#define ALIKE(a, b, c, d, e, f, g, h) (Ints)(a, b, c, d, e, f, g, h)
#else
#define PART(type) type##2
#define QUARTERS 4
#define EIGHT_EACH(words) (Ints)((int8)((words).x), (int8)((words).y))
#define FOUR_EACH(words) (Ints)((words).xxxx, (words).yyyy, (words).zzzz, (words).wwww)
#define ALIKE(a, b, c, d, e, f, g, h) (Ints)(a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h)
#endif

/* LANES codes from `first` on of a row that starts at a multiple of WIDTH bytes, at the top of 32 bits; all are in it.
   They are a work-item's vector i, whose first starts a word. */
static Ints row_codes(__global const uchar* words, ulong start, ulong first, uint i) {
#if WIDTH == 8
    return TO_INTS(*(__global const VECTOR(char)*)(words + start + first)) << (32 - BITS);
#elif WIDTH == 4
    return EIGHT_EACH(*(__global const PART(int)*)(words + start + (first >> 1))) << ALIKE(28, 24, 20, 16, 12, 8, 4, 0);
#elif WIDTH == 2 && LANES == 16
    return (Ints)(*(__global const int*)(words + start + (first >> 2))) << (Ints)(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
#elif WIDTH == 2
    return (Ints)((int)*(__global const ushort*)(words + start + (first >> 2))) << (Ints)(30, 28, 26, 24, 22, 20, 18, 16);
#elif FIELDS == 4
    return FOUR_EACH(*(__global const JOINED(int, QUARTERS)*)((__global const uint*)words + start + (first >> 2))) << ALIKE(26, 20, 14, 8, 26, 20, 14, 8);
#else
    __global const int* word = (__global const int*)words + start + (first - LANES * i) / FIELDS;
#define SIX(k) (word[(LANES * i + 0x##k##u) / FIELDS] << (26u - 6u * ((LANES * i + 0x##k##u) % FIELDS)))
    return (Ints)(FOR_EACH_LANE(SIX));
#endif
}

/* One work-item VECTORS vectors of a row, one row of work-items a row. `sharing` + 1 vectors, at most, have one scale. */
HINT __kernel void dequantize_rows(__global const uchar* words, __global const uchar* scales, __global const uint* tensor,
                              __constant const ulong* grid, __global const int* table, __global uchar* y, ulong length,
                              ulong stride, ulong rows, ulong blocks, ulong eights, uint shift, uint lowest, uint highest,
                              uint sharing) {
    ulong first = (ulong)get_global_id(0) * (LANES * VECTORS), row = get_global_id(1), at = row * length;
    uint g = TENSOR ? tensor[0] : 0u;
    ulong base = outer_block(row, grid) * blocks;
    Scales s = 0;
#if WIDTH == 6 && FIELDS == 5
#pragma unroll
#endif
    for (uint i = 0; i < VECTORS; i++, first += LANES) {
        if ((i & sharing) == 0u) s = row_scales(scales, g, base, first, LANES, eights, shift);
        Uints r = products(row_codes(words, row * stride, first, i), s, lowest, highest, table);
        store_row(y, at + first, r, WHOLE);
    }
}

/* One work-item a vector of a row from `from` on, or as much as there is of it. */
HINT __kernel void dequantize_ends(__global const uchar* words, __global const uchar* scales, __global const uint* tensor,
                              __constant const ulong* grid, __global const int* table, __global uchar* y, ulong length,
                              ulong stride, ulong rows, ulong blocks, ulong eights, uint shift, uint lowest, uint highest,
                              ulong from) {
    ulong first = from + (ulong)get_global_id(0) * LANES, row = get_global_id(1);
    if (first >= length || row >= rows) return;
    uint count = (uint)min(length - first, (ulong)LANES), g = TENSOR ? tensor[0] : 0u;
    uint part[LANES] = {0};
    for (uint i = 0; i < count; i++) part[i] = field_at(words, row * stride, first + i);
    Scales s = row_scales(scales, g, outer_block(row, grid) * blocks, first, count, eights, shift);
    store_row(y, row * length + first, products(AS_INTS(LOADED(0, part)) << (32 - BITS), s, lowest, highest, table), count);
}

#define COLUMN(lane) w[0x##lane##u * step]

/* The pieces of 32 bits that hold rows piece * FIELDS and on of LANES columns, or of `count`; bytes that a column lacks are 0. */
static Uints column_pieces(__global const uchar* words, ulong start, ulong piece, ulong stride, uint count) {
    uint bytes = WIDTH == 6 ? 0u : 2u; /* what `stride` counts: words or, shifted, bytes */
    ulong step = stride >> bytes;
    if (count == LANES && step << bytes == stride) {
        __global const uint* w = (__global const uint*)words + (start >> bytes) + piece;
        return (Uints)(FOR_EACH_LANE(COLUMN));
    }
    uint part[LANES] = {0};
    for (uint i = 0; i < count; i++) {
#if WIDTH == 6
        part[i] = ((__global const uint*)words)[start + i * stride + piece];
#else
        for (uint j = 0; j < 4u && 4u * piece + j < stride; j++) {
            part[i] |= (uint)words[start + i * stride + 4u * piece + j] << (8u * j);
        }
#endif
    }
    return LOADED(0, part);
}

/* One work-item ACROSS vectors of columns of FIELDS rows, so that whole lines of memory are written; columns' words start `stride`
   apart. `deep` is the rows of a block, `high` the blocks of all rows. */
HINT __kernel void dequantize_tiles(__global const uchar* words, __global const uchar* scales, __global const uint* tensor,
                                    __constant const ulong* grid, __global const int* table, __global uchar* y, ulong length,
                                    ulong stride, ulong rows, ulong blocks, ulong eights, uint shift, uint lowest,
                                    uint highest, ulong deep, ulong high) {
    ulong first = (ulong)get_global_id(0) * (LANES * ACROSS), piece = get_global_id(1), batch = get_global_id(2);
    ulong row = piece * FIELDS;
    if (first >= length || row >= rows) return;
    uint last = (uint)min(rows - row, (ulong)FIELDS), g = TENSOR ? tensor[0] : 0u;
    Uints column[ACROSS];
    uint count[ACROSS];
    Scales s[ACROSS];
    for (uint k = 0; k < ACROSS; k++) {
        count[k] = (uint)(min(max(length, first + LANES * k) - (first + LANES * k), (ulong)LANES));
        column[k] = column_pieces(words, (batch * length + first + LANES * k) * stride, piece, stride, count[k]);
        if ((length & (LANES * ACROSS - 1u)) == 0u) count[k] = WHOLE;
    }
    ulong block = quotient_of(row, deep), next = row, outer = outer_block(batch, grid) * high + block;
    for (uint i = 0; i < last; i++) {
        if (row + i == next) {
            for (uint k = 0; k < ACROSS; k++) {
                uint held = min(count[k], (uint)LANES);
                s[k] = held ? row_scales(scales, g, outer * blocks, first + LANES * k, held, eights, shift) : (Scales)(0u);
            }
            next = (++block) * deep;
            outer++;
        }
        ulong at = (batch * rows + row + i) * length + first;
        for (uint k = 0; k < ACROSS; k++) {
            Uints r = products(AS_INTS(column[k] >> (i * WIDTH)) << (32 - BITS), s[k], lowest, highest, table);
            store_row(y, at + LANES * k, r, count[k]);
        }
    }
}
