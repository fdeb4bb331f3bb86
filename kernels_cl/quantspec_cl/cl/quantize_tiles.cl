/* Quantize tiles: blocks of ROWS rows, of the last two axes, straight to words along either. SCL-5, QNT-6, PAK-2 to PAK-5.

   COLUMNS is the extent of a block along the last axis: 1, and a work-item takes eight neighbouring blocks, a lane each, or a
   multiple of eight, and a work-item takes one block. ACROSS: words run along the axis before the last, whose lines are the
   columns. A PIECE is the fields of four bytes of words. */

#if COLUMNS == 1
#define SPAN 8
#else
#define SPAN COLUMNS
#endif
#if COLUMNS == 1 && ROWS <= 128
#define KEPT ROWS
#else
#define KEPT 1
#endif

/* A tile by the generic steps: `deep` rows of `wide` columns, rows `step` elements apart; `line` bytes from a line to the next. */
static uint whole_tile(__global const Input* x, uint deep, uint wide, ulong step, __global uchar* scales, ulong block,
                       __global uchar* words, ulong line, uint g, __global const int* table) {
    uint s[SPAN / COLUMNS], saturated = 0;
    for (uint k = 0; k * COLUMNS < wide; k++) {
        uint largest = 0, stop = min((k + 1) * COLUMNS, wide);
        for (uint row = 0; row < deep; row++) {
            for (uint column = k * COLUMNS; column < stop; column++) largest = max(largest, finite_magnitude(x, row * step + column));
        }
        s[k] = block_scale(largest, scales, block + k, g, 1u << k, &saturated);
    }
    uint lines = ACROSS ? wide : deep, length = ACROSS ? deep : wide;
    for (uint at = 0; at < lines; at++) {
        for (uint first = 0; first < length; first += FIELDS) {
            uint word = 0;
            for (uint field = 0; field < FIELDS && first + field < length; field++) {
                uint column = ACROSS ? at : first + field;
                ulong row = ACROSS ? first + field : at;
                word |= field_of(x, row * step + column, s[column / COLUMNS], table) << (field * WIDTH);
            }
            store_code(words + at * line, WORD_SIZE, first / FIELDS, word);
        }
    }
    return saturated;
}

/* Largest magnitudes: of eight columns, or of the tile in every lane; a narrow tile is kept, its rows lie far apart. */
static uint8 largest_of(__global const Input* x, ulong step, uint8* kept) {
    uint8 m = 0;
    for (uint row = 0; row < ROWS; row++) {
        FETCH(x + row * step + SPAN / LINE * LINE + LINE); /* the next work-item's, or that after it */
        for (uint i = 0; i < SPAN; i += 8) {
            uint8 numbers = load8(x, row * step + i);
            if (KEPT > 1) kept[row] = numbers;
            m = larger(m, numbers & MAGNITUDE);
        }
    }
#if COLUMNS > 1
    m = (uint8)largest_lane(m);
#endif
    return m;
}

/* The given codes of the tile's blocks, one a lane, or 0. */
static uint8 given_codes(__global const uchar* scales, ulong block) {
#if !GIVEN
    return 0;
#elif COLUMNS == 1
    return load_scales(scales, block);
#else
    return (uint8)load_code(scales, SCALE_SIZE, block);
#endif
}

static void store_chosen(uint8 code, __global uchar* scales, ulong block) {
#if HAS_BLOCK && !GIVEN && COLUMNS == 1
    store_scales(code, scales, block);
#elif HAS_BLOCK && !GIVEN
    store_code(scales, SCALE_SIZE, block, code.s0);
#endif
}

#if KEPT > 1
#define ENCODED(row, i) encode8(kept[row], c.s, c.inverse, c.rest)
#else
#define ENCODED(row, i) encode8(load8(x, (row) * step + (i)), c.s, c.inverse, c.rest)
#endif

typedef uint Loose __attribute__((aligned(1)));

/* Four bytes to each of eight lines. */
static void store_pieces(uint8 fields, __global uchar* at, ulong line) {
    *(__global Loose*)at = fields.s0;
    *(__global Loose*)(at + line) = fields.s1;
    *(__global Loose*)(at + 2 * line) = fields.s2;
    *(__global Loose*)(at + 3 * line) = fields.s3;
    at += 4 * line;
    *(__global Loose*)at = fields.s4;
    *(__global Loose*)(at + line) = fields.s5;
    *(__global Loose*)(at + 2 * line) = fields.s6;
    *(__global Loose*)(at + 3 * line) = fields.s7;
}

/* The codes of a tile. PAK-2 to PAK-4 */
static void store_tile(__global const Input* x, ulong step, const uint8* kept, Choice c, __global uchar* words, ulong line) {
#if ACROSS
    for (uint row = 0; row < ROWS; row += PIECE) {
        for (uint i = 0; i < SPAN; i += 8) {
            uint8 fields = ENCODED(row, i);
            for (uint k = 1; k < PIECE; k++) fields |= ENCODED(row + k, i) << (k * WIDTH);
            store_pieces(fields, words + i * line + row / PIECE * 4, line);
        }
    }
#else
    for (uint row = 0; row < ROWS; row++) {
        for (uint i = 0; i < SPAN; i += 8) store8(ENCODED(row, i), words + row * line + i * WORD_SIZE / FIELDS);
    }
#endif
}

/* `rows` x `columns` matrices, `a_line` bytes of words a line; `high` x `across` tiles a matrix. */
__attribute__((vec_type_hint(uint8))) /* the vectors are explicit: Intel's runtime would take them apart */
__kernel void quantize_tiles(__global const Input* x, __global const uint* tensor, __global const int* table,
                             __global uchar* scales, __global uchar* words, __global uchar* saturated, ulong rows, ulong columns,
                             ulong high, ulong across, ulong a_line) {
    ulong column = get_global_id(0) * SPAN, tile = get_global_id(1), row = tile * ROWS, matrix = get_global_id(2);
    if (column >= columns || row >= rows) return;
    uint deep = (uint)min(rows - row, (ulong)ROWS), wide = (uint)min(columns - column, (ulong)SPAN), flags = 0;
    uint g = HAS_TENSOR ? tensor[0] : 0u;
    ulong place = matrix * high + tile, block = COLUMNS == 1 ? place * columns + column : place * across + column / SPAN;
    x += (matrix * rows + row) * columns + column;
    if (ACROSS) words += (matrix * columns + column) * a_line + row / FIELDS * WORD_SIZE;
    else words += (matrix * rows + row) * a_line + column * WORD_SIZE / FIELDS;
    int whole = deep == ROWS && wide == SPAN && is_usable(g);
    if (whole) {
        uint8 kept[KEPT];
        Choice c = choose(largest_of(x, columns, kept), given_codes(scales, block), as_float(g));
        whole = !any(c.odd);
        if (whole) store_chosen(c.code, scales, block);
        if (whole) store_tile(x, columns, kept, c, words, a_line);
    }
    if (!whole) flags = whole_tile(x, deep, wide, columns, scales, block, words, a_line, g, table);
    if (SATURABLE) saturated[place * across + column / SPAN] = (uchar)flags;
}
