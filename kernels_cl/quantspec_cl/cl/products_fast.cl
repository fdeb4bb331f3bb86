/* Products, fast: eight columns at once, their weights decoded where they are used. PRD-3 to PRD-8, QNT-9.

   Definitions beside those of decode_fast.cl. ALONG: 1 where the words of a column follow one another (packed along K), 0 where
   those of a row do. ROWS: rows of x at once. VECTORS: eights of columns at once. STEPS: indices of a run that share a scale, at
   most 32. SCALES: vectors of them (one, where all columns of a work-item share theirs). SPAN: how often VECTORS eights a work-item
   takes. PULLED: where scales are powers of two, each can meet a run's sum, or the numbers, instead of every weight: all exact.

   Floats are used for a run where every number that occurs is zero or normal: x, the weights, and all sums, since these are
   multiples of the product of the lowest bits of both. Whether that is so is decided in integers, from the exponents of x in
   the run and of the scales. Other runs are done over, in integers, and from then on sums are added in integers too. */
#define TO_SUMS 1
#define TO_NUMBERS 2
#ifndef FUSED
#define FUSED(x, w, p) fma(x, w, p)
#endif
#ifndef RUN_OK /* the run's exponents let no number leave the normal ones */
#define RUN_OK(low, high) \
    ((low) >= lowest && (high) <= highest && x_low >= least_x && x_low + (low) >= least && x_high + (high) <= most)
#endif
#ifndef SUM_START
#define SUM_START 0.0f
#endif

/* x for ROWS rows, index by index, and the exponent fields of each run: least of what is not zero, and largest. */
__kernel void product_rows(__constant const Format* formats, uint number_type, __global const uchar* x, __global uint* ordered,
                           __global uint* ranges, ulong rows, ulong size, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong runs = size / 32u, tile = i / runs, first = (i - tile * runs) * 32u;
    uint low = 255, high = 0;
    for (uint k = 0; k < 32u; k++) {
        for (uint r = 0; r < ROWS; r++) {
            ulong row = tile * ROWS + r;
            uint number = row < rows ? load_number(x, formats + number_type, row * size + first + k) : 0u;
            uint field = (number >> 23) & 255u;
            if (number & MAGNITUDE) low = min(low, field), high = max(high, field);
            ordered[(tile * size + first + k) * ROWS + r] = number;
        }
    }
    ranges[i] = low | (high << 8);
}

/* Eight columns' words of a run, word i of each in t[i]; columns start `stride` words apart. */
#if ALONG
#define LOW_PAIRS(a, b) (uint8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5)
#define HIGH_PAIRS(a, b) (uint8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7)
#define LOW_HALVES(a, b) (uint8)(a.s01, b.s01, a.s45, b.s45)
#define HIGH_HALVES(a, b) (uint8)(a.s23, b.s23, a.s67, b.s67)
#if WIDTH >= 4
#define TWO_LINES(j) (uint8)(vload4(0, words + j * stride), vload4(0, words + (j + 4) * stride))
#else
#define TWO_LINES(j) (uint8)(vload2(0, words + j * stride), 0u, 0u, vload2(0, words + (j + 4) * stride), 0u, 0u)
#endif
static void load_run(__global const uint* words, ulong stride, uint8* t) {
#pragma unroll
    for (uint i = 0; i < WIDTH; i += 4) {
        uint8 a = TWO_LINES(0), b = TWO_LINES(1), c = TWO_LINES(2), d = TWO_LINES(3);
        uint8 e = LOW_PAIRS(a, b), f = LOW_PAIRS(c, d);
        t[i] = LOW_HALVES(e, f);
        t[i + 1] = HIGH_HALVES(e, f);
#if WIDTH >= 4
        uint8 g = HIGH_PAIRS(a, b), h = HIGH_PAIRS(c, d);
        t[i + 2] = LOW_HALVES(g, h);
        t[i + 3] = HIGH_HALVES(g, h);
#endif
        words += 4;
    }
}
#else
/* The codes of eight columns that are all there, at the top of 32 bits. */
static int8 load_row(__global const uchar* words) {
#if WIDTH == 8
    return convert_int8(vload8(0, (__global const char*)words)) << (32 - BITS);
#elif WIDTH == 4
    return (int8)(*(__global const int*)words) << (int8)(28, 24, 20, 16, 12, 8, 4, 0);
#else
    return (int8)((int)*(__global const ushort*)words) << (int8)(30, 28, 26, 24, 22, 20, 18, 16);
#endif
}
#endif

/* All numbers of a format of four bits, which a shuffle looks up; of a float format without sign. `code`: in the low bits. */
#if BITS == 4 && VALUE_KIND != INTEGER
#define LOOKED_UP 1
typedef struct {
    float8 low, high;
} Known;
static Known known_of(__global const int* table) {
    int8 code = (int8)(0, 1, 2, 3, 4, 5, 6, 7);
    Known known = {numbers_of(code << 28, table), numbers_of((code + 8) << 28, table)};
    return known;
}
#else
#define LOOKED_UP 0
typedef int Known;
static Known known_of(__global const int* table) { return 0; }
#endif

/* The numbers of eight codes, which stand at the top of 32 bits and at the bottom. VAL-1 to VAL-3, VAL-12 */
static float8 weights_of(int8 top, uint8 code, Known known, __global const int* table) {
#if LOOKED_UP && VALUE_KIND == LOOKUP
    return select(shuffle(known.low, code), shuffle(known.high, code), top);
#elif LOOKED_UP
    return as_float8(as_uint8(shuffle(known.low, code)) ^ VALUE_SIGN(top));
#else
    return as_float8(patterns_of(top, table));
#endif
}

/* Scales of eight columns (of all, where not EACH) in a row of blocks. */
static Scales scales_at(__global const uchar* scales, uint g, ulong at) {
#if SCALE_KIND == NONE
    return g;
#else
#if EACH
#if SCALE_SIZE == 1
    Scales b = convert_uint8(vload8(0, scales + at));
#elif SCALE_SIZE == 2
    Scales b = convert_uint8(vload8(0, (__global const ushort*)scales + at));
#else
    Scales b = vload8(0, (__global const uint*)scales + at);
#endif
#else
    Scales b = load_code(scales, SCALE_SIZE, at);
#endif
    b = scales_of(b);
#if TENSOR
    b = effective(b, g);
#endif
    return b;
#endif
}

/* The exponent fields of scales: least and largest. */
static uint2 fields_of(Scales s) {
    s = (s >> 23) & (Scales)(255u);
#if EACH
    uint4 low = min(s.lo, s.hi), high = max(s.lo, s.hi);
    uint2 lower = min(low.lo, low.hi), higher = max(high.lo, high.hi);
    return (uint2)(min(lower.x, lower.y), max(higher.x, higher.y));
#else
    return (uint2)(s, s);
#endif
}

/* One run of one row and column, in integers. */
typedef struct {
    __constant const Format *value, *scale;
    __global const int* table;
    uint entries;
    __global const uchar *words, *scales;
    __constant const ulong* lines;
    uint g;
    ulong down, across, blocks; /* extents of a block, blocks a row of them */
} Weights;

static uint exact_run(const Weights* w, __global const uint* x, ulong first, ulong n) {
    uint p = 0;
    for (uint i = 0; i < 32u; i++) {
        ulong k = first + i;
        uint s = w->g;
#if SCALE_KIND != NONE
        s = decode_scale_code(load_code(w->scales, SCALE_SIZE, k / w->down * w->blocks + n / w->across), w->scale);
#if TENSOR
        s = multiply(w->g, s);
#endif
#endif
        uint v = decode_value(code_at(w->words, w->lines, k, n, w->value, w->entries), w->value, w->table, w->entries);
        p = fused(x[i * ROWS], multiply(s, v), p);
    }
    return p;
}

/* The sums of all rows and columns of a work-item with a run more, which is done over unless it is `plain`. */
static void exact_sums(const Weights* w, __global const uint* x, ulong first, const ulong* column, uint plain,
                       float8* totals, const float8* runs) {
    for (uint i = 0; i < 8u * VECTORS * ROWS; i++) {
        uint lane = i & 7u, v = i / (8u * ROWS), r = (i >> 3) - v * ROWS;
        uint* total = (uint*)totals + i;
        uint p = ((const uint*)runs)[i];
        *total = sum_of(*total, plain ? p : exact_run(w, x + r, first, column[v] + lane));
    }
}

static void store_numbers(__global uchar* y, ulong at, float8 total) {
    uint8 r = as_uint8(total);
    r = narrow8(select(r, (uint8)(QNAN), (r & MAGNITUDE) > INF), 0);
#if OUT_SIZE == 4
    vstore8(r, 0, (__global uint*)y + at);
#else
    vstore8(convert_ushort8(r), 0, (__global ushort*)y + at);
#endif
}

/* One run of ROWS rows and VECTORS eights of columns: p, and the least and largest exponent field of the scales that it met. */
static uint2 run_of(__global const uint* x, __global const uchar* words, ulong stride, __global const uchar* scales, uint g,
                    ulong blocks, const ulong* column, const ulong* at, Known known, __global const int* table, float8* p) {
    uint2 range = (uint2)(255u, 0u);
#if ALONG
    uint8 t[VECTORS * WIDTH];
#pragma unroll
    for (uint v = 0; v < VECTORS; v++) load_run((__global const uint*)words + column[v] * (stride / 4u), stride / 4u, t + v * WIDTH);
#endif
#pragma unroll
    for (uint i = 0; i < VECTORS * ROWS; i++) p[i] = (float8)(SUM_START);
#pragma unroll
    for (uint part = 0; part < 32u; part += STEPS) {
        Scales s[SCALES];
#pragma unroll
        for (uint v = 0; v < SCALES; v++) {
            s[v] = scales_at(scales, g, at[v] + part / STEPS * blocks);
            uint2 fields = fields_of(s[v]);
            range = (uint2)(min(range.x, fields.x), max(range.y, fields.y));
        }
#pragma unroll
        for (uint k = part; k < part + STEPS; k++) {
            float number[ROWS];
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                number[r] = as_float(x[k * ROWS + r]);
#if PULLED == TO_NUMBERS
                number[r] *= AS_FLOAT(s[0]);
#endif
            }
#pragma unroll
            for (uint v = 0; v < VECTORS; v++) {
#if ALONG
                uint8 word = t[v * WIDTH + k * WIDTH / 32u], code = word >> (k * WIDTH & 31u);
                int8 top = as_int8(WIDTH == BITS ? word << (32u - BITS - (k * WIDTH & 31u)) : code << (32u - BITS));
#else
                int8 top = load_row(words + k * stride + column[v] * WIDTH / 8u);
                uint8 code = as_uint8(top) >> (uint)(32 - BITS);
#endif
                float8 weight = weights_of(top, code, known, table);
#if !PULLED
                weight *= AS_FLOAT(s[SCALES == 1 ? 0 : v]);
#endif
#pragma unroll
                for (uint r = 0; r < ROWS; r++) p[v * ROWS + r] = FUSED((float8)(number[r]), weight, p[v * ROWS + r]);
            }
        }
#if PULLED == TO_SUMS
#pragma unroll
        for (uint i = 0; i < VECTORS * ROWS; i++) p[i] *= AS_FLOAT(s[SCALES == 1 ? 0 : i / ROWS]);
#endif
    }
    return range;
}

/* ROWS rows of x and SPAN times VECTORS eights of columns a work-item. */
__kernel void product_columns(__constant const Format* formats, uint value, uint scale, uint entries, __global const int* table,
                              __global const uint* x, __global const uint* ranges, __global const uchar* words,
                              __constant const ulong* lines, __global const uchar* scales, __global const uint* tensor,
                              __global uchar* y, ulong rows, ulong size, ulong columns, ulong stride, ulong down, ulong across,
                              ulong blocks, uint lowest, uint highest, uint least, uint most, uint least_x) {
    ulong n = (ulong)get_global_id(0) * (8u * VECTORS * SPAN), tile = get_global_id(1), runs = size / 32u, base = 0;
    if (n >= columns) return;
    uint g = TENSOR ? tensor[0] : 0u, left = (uint)min(down, size);
    Known known = known_of(table);
    Weights w = {formats + value, formats + scale, table, entries, words, scales, lines, g, down, across, blocks};
    float8 total[SPAN * VECTORS * ROWS];
    uint exact[SPAN];
    for (uint i = 0; i < SPAN * VECTORS * ROWS; i++) total[i] = (float8)(0.0f);
    for (uint i = 0; i < SPAN; i++) exact[i] = 0;
    for (ulong run = 0; run < runs; run++) {
        __global const uint* here = x + (tile * size + run * 32u) * ROWS;
        uint range = ranges[tile * runs + run], x_low = range & 255u, x_high = range >> 8;
        for (uint part = 0; part < SPAN; part++) {
            ulong column[VECTORS], at[SCALES];
            float8 p[VECTORS * ROWS];
#pragma unroll
            for (uint v = 0; v < VECTORS; v++) column[v] = min(n + 8u * (part * VECTORS + v), columns - 8u);
#pragma unroll
            for (uint v = 0; v < SCALES; v++) at[v] = base + (EACH ? column[v] : column[v] / across);
            uint2 fields = run_of(here, words + (ALONG ? run * (4u * WIDTH) : run * 32u * stride), stride, scales, g, blocks, column,
                                  at, known, table, p);
            uint plain = RUN_OK(fields.x, fields.y);
            float8* sums = total + part * VECTORS * ROWS;
            exact[part] |= !plain;
            if (exact[part]) {
                float8 kept[VECTORS * ROWS]; /* in memory, so that p stays in registers */
#pragma unroll
                for (uint i = 0; i < VECTORS * ROWS; i++) kept[i] = p[i];
                exact_sums(&w, here, run * 32u, column, plain, sums, kept);
            } else {
#pragma unroll
                for (uint i = 0; i < VECTORS * ROWS; i++) sums[i] += p[i];
            }
        }
        left -= min(left, 32u);
        if (STEPS < 32u) base += 32u / STEPS * blocks;
        else if (left == 0) base += blocks, left = (uint)min(down, size);
    }
    for (uint part = 0; part < SPAN; part++) {
#pragma unroll
        for (uint i = 0; i < VECTORS * ROWS; i++) {
            ulong row = tile * ROWS + i % ROWS, column = n + 8u * (part * VECTORS + i / ROWS);
            if (row < rows && column < columns) store_numbers(y, row * columns + column, total[part * VECTORS * ROWS + i]);
        }
    }
}
