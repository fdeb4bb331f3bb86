/* Dequantize straight from words. QNT-9 to QNT-11, PAK-1 to PAK-6, BLK-3.

   Three kernels: rows, where the packed axis is the innermost, so that words and numbers lie in one order, and its ends, which
   takes what is left of the rows; tiles, where it is the axis before it, so that a word's codes go to as many rows. FIELDS:
   codes that a piece of 32 bits of words holds; EIGHTS: eights of elements that a work-item of rows takes. An outer grid is
   [axes, (size, extent, blocks, stride) each], as in blocks.cl, for what is outside the innermost one or two axes. */

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

/* The scales of elements first .. first + 7 of a row whose blocks start at `base`; every extent holds whole eights of elements,
   extent = 8 << shift where that is possible. */
static Scales row_scales(__global const uchar* scales, uint g, ulong base, ulong first, uint count, ulong eights, uint shift) {
#if SCALE_KIND == NONE
    return g;
#else
#if EACH
    Scales b = 0;
    if (count == 8u) {
#if SCALE_SIZE == 1
        b = convert_uint8(vload8(0, scales + base + first));
#elif SCALE_SIZE == 2
        b = convert_uint8(vload8(0, (__global const ushort*)scales + base + first));
#else
        b = vload8(0, (__global const uint*)scales + base + first);
#endif
    } else {
        uint part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (uint i = 0; i < count; i++) part[i] = load_code(scales, SCALE_SIZE, base + first + i);
        b = vload8(0, part);
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

#define ACROSS (8 / OUT_SIZE) /* eights of numbers in 64 bytes */
#ifndef HINT
#define HINT
#endif
#define WHOLE_EIGHT 9u /* eight elements at a place that is a multiple of eight */

static void store_row(__global uchar* y, ulong at, uint8 r, uint count) {
#if OUT_SIZE == 4
    __global uint* place = (__global uint*)y + at;
    if (count == WHOLE_EIGHT) STREAM(r, (__global uint8*)place);
    else if (count == 8u) vstore8(r, 0, place);
#else
    __global ushort* place = (__global ushort*)y + at;
    if (count == WHOLE_EIGHT) STREAM(convert_ushort8(r), (__global ushort8*)place);
    else if (count == 8u) vstore8(convert_ushort8(r), 0, place);
#endif
    else {
        uint part[8];
        vstore8(r, 0, part);
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

/* Codes first .. first + 7 of a row that starts at a multiple of WIDTH bytes, at the top of 32 bits; all are in it.
   They are a work-item's eight i, whose first starts a word. */
static int8 row_codes(__global const uchar* words, ulong start, ulong first, uint i) {
#if WIDTH == 8
    return convert_int8(*(__global const char8*)(words + start + first)) << (32 - BITS);
#elif WIDTH == 4
    return (int8)(*(__global const int*)(words + start + (first >> 1))) << (int8)(28, 24, 20, 16, 12, 8, 4, 0);
#elif WIDTH == 2
    return (int8)((int)*(__global const ushort*)(words + start + (first >> 2))) << (int8)(30, 28, 26, 24, 22, 20, 18, 16);
#elif FIELDS == 4
    int2 word = *(__global const int2*)((__global const uint*)words + start + (first >> 2));
    return (int8)(word.xxxx, word.yyyy) << (int8)(26, 20, 14, 8, 26, 20, 14, 8);
#else
    __global const int* word = (__global const int*)words + start + (first - 8u * i) / FIELDS;
#define SIX(k) (word[(8u * i + (k)) / FIELDS] << (26u - 6u * ((8u * i + (k)) % FIELDS)))
    return (int8)(SIX(0), SIX(1), SIX(2), SIX(3), SIX(4), SIX(5), SIX(6), SIX(7));
#endif
}

/* One work-item EIGHTS eights of a row, one row of work-items a row. `sharing` + 1 eights, at most, have one scale. */
HINT __kernel void dequantize_rows(__global const uchar* words, __global const uchar* scales, __global const uint* tensor,
                              __constant const ulong* grid, __global const int* table, __global uchar* y, ulong length,
                              ulong stride, ulong rows, ulong blocks, ulong eights, uint shift, uint lowest, uint highest,
                              uint sharing) {
    ulong first = (ulong)get_global_id(0) * (8u * EIGHTS), row = get_global_id(1), at = row * length;
    uint g = TENSOR ? tensor[0] : 0u;
    ulong base = outer_block(row, grid) * blocks;
    Scales s = 0;
#if WIDTH == 6 && FIELDS == 5
#pragma unroll
#endif
    for (uint i = 0; i < EIGHTS; i++, first += 8u) {
        if ((i & sharing) == 0u) s = row_scales(scales, g, base, first, 8u, eights, shift);
        uint8 r = products(row_codes(words, row * stride, first, i), s, lowest, highest, table);
        store_row(y, at + first, r, WHOLE_EIGHT);
    }
}

/* One work-item eight elements of a row from `from` on, or as many as there are. */
HINT __kernel void dequantize_ends(__global const uchar* words, __global const uchar* scales, __global const uint* tensor,
                              __constant const ulong* grid, __global const int* table, __global uchar* y, ulong length,
                              ulong stride, ulong rows, ulong blocks, ulong eights, uint shift, uint lowest, uint highest,
                              ulong from) {
    ulong first = from + (ulong)get_global_id(0) * 8u, row = get_global_id(1);
    if (first >= length || row >= rows) return;
    uint count = (uint)min(length - first, (ulong)8), g = TENSOR ? tensor[0] : 0u;
    uint part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (uint i = 0; i < count; i++) part[i] = field_at(words, row * stride, first + i);
    Scales s = row_scales(scales, g, outer_block(row, grid) * blocks, first, count, eights, shift);
    store_row(y, row * length + first, products(as_int8(vload8(0, part)) << (32 - BITS), s, lowest, highest, table), count);
}

/* The pieces of 32 bits that hold rows piece * FIELDS and on of eight columns, or of `count`; bytes that a column lacks are 0. */
static uint8 column_pieces(__global const uchar* words, ulong start, ulong piece, ulong stride, uint count) {
    uint bytes = WIDTH == 6 ? 0u : 2u; /* what `stride` counts: words or, shifted, bytes */
    ulong step = stride >> bytes;
    if (count == 8u && step << bytes == stride) {
        __global const uint* w = (__global const uint*)words + (start >> bytes) + piece;
        return (uint8)(w[0], w[step], w[2 * step], w[3 * step], w[4 * step], w[5 * step], w[6 * step], w[7 * step]);
    }
    uint part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (uint i = 0; i < count; i++) {
#if WIDTH == 6
        part[i] = ((__global const uint*)words)[start + i * stride + piece];
#else
        for (uint j = 0; j < 4u && 4u * piece + j < stride; j++) {
            part[i] |= (uint)words[start + i * stride + 4u * piece + j] << (8u * j);
        }
#endif
    }
    return vload8(0, part);
}

/* One work-item ACROSS eights of columns of FIELDS rows, so that whole lines of memory are written; columns' words start `stride`
   apart. `deep` is the rows of a block, `high` the blocks of all rows. */
HINT __kernel void dequantize_tiles(__global const uchar* words, __global const uchar* scales, __global const uint* tensor,
                                    __constant const ulong* grid, __global const int* table, __global uchar* y, ulong length,
                                    ulong stride, ulong rows, ulong blocks, ulong eights, uint shift, uint lowest,
                                    uint highest, ulong deep, ulong high) {
    ulong first = (ulong)get_global_id(0) * (8u * ACROSS), piece = get_global_id(1), batch = get_global_id(2);
    ulong row = piece * FIELDS;
    if (first >= length || row >= rows) return;
    uint last = (uint)min(rows - row, (ulong)FIELDS), g = TENSOR ? tensor[0] : 0u;
    uint8 column[ACROSS];
    uint count[ACROSS];
    Scales s[ACROSS];
    for (uint k = 0; k < ACROSS; k++) {
        count[k] = (uint)(min(max(length, first + 8u * k) - (first + 8u * k), (ulong)8));
        column[k] = column_pieces(words, (batch * length + first + 8u * k) * stride, piece, stride, count[k]);
        if ((length & (8u * ACROSS - 1u)) == 0u) count[k] = WHOLE_EIGHT;
    }
    ulong block = quotient_of(row, deep), next = row, outer = outer_block(batch, grid) * high + block;
    for (uint i = 0; i < last; i++) {
        if (row + i == next) {
            for (uint k = 0; k < ACROSS; k++) {
                uint held = min(count[k], 8u);
                s[k] = held ? row_scales(scales, g, outer * blocks, first + 8u * k, held, eights, shift) : (Scales)(0u);
            }
            next = (++block) * deep;
            outer++;
        }
        ulong at = (batch * rows + row + i) * length + first;
        for (uint k = 0; k < ACROSS; k++) {
            uint8 r = products(as_int8(column[k] >> (i * WIDTH)) << (32 - BITS), s[k], lowest, highest, table);
            store_row(y, at + 8u * k, r, count[k]);
        }
    }
}
