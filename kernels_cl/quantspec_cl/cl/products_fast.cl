/* Products, fast: eight columns at once, their weights decoded where they are used. PRD-3 to PRD-8, QNT-9.

   Definitions beside those of weights_fast.cl. ROWS: rows of x at once. VECTORS: eights of columns at once. STEPS: indices of a run that share a scale, at
   most 32. SCALES: vectors of them (one, where all columns of a work-item share theirs). SPAN: how often VECTORS eights a work-item
   takes. PULLED: where scales are powers of two, each can meet a run's sum, or the numbers, instead of every weight: all exact.

   Floats are used for a run where every number that occurs is zero or normal: x, the weights, and all sums, since these are
   multiples of the product of the lowest bits of both. Whether that is so is decided in integers, from the exponents of x in
   the run and of the scales. Other runs are done over, in integers, and from then on sums are added in integers too. */
#define TO_SUMS 1
#define TO_NUMBERS 2
#ifndef FLOAT_STEP
#define FLOAT_STEP(x, w, p) fma(x, w, p)
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
    r = narrow_all(select(r, (uint8)(QNAN), (r & MAGNITUDE) > INF), 0);
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
                for (uint r = 0; r < ROWS; r++) p[v * ROWS + r] = FLOAT_STEP((float8)(number[r]), weight, p[v * ROWS + r]);
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
