/* Products, for every scheme: one work-item an element of the result, everything in integers. PRD-2 to PRD-17.

   Grids are those of blocks.cl. */
#ifndef RUN
#define RUN 32u /* PRD-4, PRD-16 */
#endif
#ifndef STEP
#define STEP(a, b, p) fused(a, b, p) /* PRD-5 */
#endif
#ifndef NEXT_CUT
#define NEXT_CUT(at, extent) ((at) - (at) % (extent) + (extent)) /* PRD-12 */
#endif

/* The sum of a run and of the runs before it. PRD-4 to PRD-6 */
typedef struct {
    uint run;
    uint total;
    uint count; /* steps of the run */
} Sum;

static void take_step(Sum* sum, uint a, uint b) {
    if (sum->count == RUN) {
        sum->total = sum_of(sum->total, sum->run);
        sum->run = 0;
        sum->count = 0;
    }
    sum->run = STEP(a, b, sum->run);
    sum->count++;
}

static uint total_of(const Sum* sum) { return sum->count ? sum_of(sum->total, sum->run) : sum->total; }

/* x [rows, K] of numbers times w [K, columns]. PRD-2 to PRD-9 */
__kernel void product(__constant const Format* formats, uint number_type, uint value, __global const int* table, uint entries,
                      uint output, __global const uchar* x, __global const uchar* words, __constant const ulong* lines,
                      __global const uint* effective, __constant const ulong* grid, __global uchar* y, ulong size, ulong columns,
                      ulong count) {
    ulong i = get_global_id(0);
    if (i >= count) return;
    ulong row = quotient_of(i, columns), n = i - row * columns;
    __constant const Format* f = formats + value;
    Sum sum = {0, 0, 0};
    for (ulong k = 0; k < size; k++) {
        uint w = multiply(effective[block_of(k * columns + n, grid)], decode_value(code_at(words, lines, k, n, f, entries), f, table, entries));
        take_step(&sum, load_number(x, formats + number_type, row * size + k), w);
    }
    store_code(y, formats[output].size, i, narrow(total_of(&sum), formats + output));
}

/* One factor of a product of codes */
typedef struct {
    uint image; /* magnitude in units of 2^-unit_of(f); below 2^32 for every value format */
    uint sign;
    uint special; /* 0, INF or QNAN */
} Factor;

static Factor factor_of(uint code, __constant const Format* f) {
    Factor n = {0, 0, 0};
    if (f->kind == INTEGER) {
        int v = (int)(code ^ 0x80u) - 0x80;
        n.image = (uint)abs(v);
        n.sign = v < 0 ? SIGN : 0u;
        return n;
    }
    uint magnitude = code & f->magnitude, exponent = magnitude >> f->mantissa, m = magnitude & ((1u << f->mantissa) - 1u);
    n.sign = code & f->sign_bit ? SIGN : 0u;
    if (magnitude >= f->first_nan) n.special = QNAN;
    else if (magnitude == f->infinity) n.special = INF;
    else n.image = exponent ? (m | (1u << f->mantissa)) << (exponent - 1u) : m;
    return n;
}

static int unit_of(__constant const Format* f) { return f->kind == INTEGER ? 0 : f->bias + (int)f->mantissa - 1; }

/* IEEE 754's sum of products that are no numbers, whatever their order: 0, an infinity or NaN. PRD-14 */
static uint joined(uint special, Factor a, Factor b) {
    if ((a.special | b.special) == 0 || special == QNAN) return special;
    if (a.special == QNAN || b.special == QNAN) return QNAN;
    if (!(a.special || a.image) || !(b.special || b.image)) return QNAN;
    uint infinity = INF | (a.sign ^ b.sign);
    return special == 0 || special == infinity ? infinity : QNAN;
}

/* high * 2^64 + low in units of 2^-unit, rounded once; a sum of zero is +0. PRD-13 */
static uint rounded_sum(ulong high, ulong low, int unit) {
    uint sign = 0;
    if (high >> 63) {
        sign = SIGN;
        high = ~high + (ulong)(low == 0);
        low = 0ul - low;
    }
    if (high == 0) return low ? sign | nearest_of(low, -unit) : 0u;
    uint lead = (uint)clz(high);
    ulong top = lead ? (high << lead) | (low >> (64u - lead)) : high;
    return sign | nearest_of(top | (ulong)((low << lead) != 0), 64 - (int)lead - unit);
}

/* x [rows, K] of codes times w [K, columns]; scales of each, binary32 patterns, block by block; g: both tensor scales. PRD-10 to PRD-17 */
__kernel void product_codes(__constant const Format* formats, uint value_x, uint value_w, uint output, __global const uchar* x,
                            __global const uint* scales_x, __constant const ulong* grid_x, ulong extent_x,
                            __global const uchar* words, __constant const ulong* lines, __global const uint* scales_w,
                            __constant const ulong* grid_w, ulong extent_w, __global const uint* g_x, __global const uint* g_w,
                            __global uchar* y, ulong size, ulong columns, ulong count) {
    ulong i = get_global_id(0);
    if (i >= count) return;
    ulong row = quotient_of(i, columns), n = i - row * columns;
    __constant const Format *f = formats + value_x, *h = formats + value_w;
    Sum sum = {0, 0, 0};
    for (ulong start = 0; start < size;) {
        ulong stop = min(size, min(NEXT_CUT(start, extent_x), NEXT_CUT(start, extent_w))), high = 0, low = 0;
        uint special = 0;
        for (ulong k = start; k < stop; k++) {
            Factor a = factor_of(x[row * size + k], f), b = factor_of(code_at(words, lines, k, n, h, 0), h);
            ulong product = (ulong)a.image * b.image, before = low;
            special = joined(special, a, b);
            if (a.sign ^ b.sign) {
                low -= product;
                high -= (ulong)(low > before);
            } else {
                low += product;
                high += (ulong)(low < before);
            }
        }
        uint c = multiply(scales_x[block_of(row * size + start, grid_x)], scales_w[block_of(start * columns + n, grid_w)]);
        take_step(&sum, c, special ? special : rounded_sum(high, low, unit_of(f) + unit_of(h)));
        start = stop;
    }
    store_code(y, formats[output].size, i, narrow(multiply(multiply(g_x[0], g_w[0]), total_of(&sum)), formats + output));
}
