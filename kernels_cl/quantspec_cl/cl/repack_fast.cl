/* Repack, fast: lines that run down become lines that run across, a square of fields at a time. OPS-2, OPS-13.

   WIDTH is the bits of a field: fields of FIELDS a word of four bytes. A work-item takes 8 words of FIELDS * 8 lines: FIELDS
   lines of 8 words are turned at once, lane by lane, a lane a square of FIELDS x FIELDS; then 8 x 8 words. Lines of the
   source beyond the last are read as 0, which is what padding is. Words are loaded and stored eight at a time with a plain
   pointer: PoCL calls vload8 as a function. */
#define FIELDS (32 / WIDTH)
#define SIDE 8

typedef uint8 Words __attribute__((aligned(4)));

/* Exchanges blocks of s x s fields of lines i and i + s: of each pair, the high one of the first and the low one of the second. */
static void exchange(uint8* lines, uint s) {
    uint shift = s * WIDTH, mask = 0xFFFFFFFFu / ((1u << shift) + 1u);
    for (uint i = 0; i < FIELDS; i++) {
        if (i & s) continue;
        uint8 both = ((lines[i] >> shift) ^ lines[i + s]) & mask;
        lines[i + s] ^= both;
        lines[i] ^= both << shift;
    }
}

static void turn_fields(uint8* lines) {
#if FIELDS > 8
    exchange(lines, 8);
#endif
#if FIELDS > 4
    exchange(lines, 4);
#endif
#if FIELDS > 2
    exchange(lines, 2);
#endif
#if FIELDS > 1
    exchange(lines, 1);
#endif
}

#define LOW2(a, b) (uint8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5)
#define HIGH2(a, b) (uint8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7)
#define LOW4(a, b) (uint8)(a.s01, b.s01, a.s45, b.s45)
#define HIGH4(a, b) (uint8)(a.s23, b.s23, a.s67, b.s67)

/* Lane y of turned[x] is lane x of row y. */
static void turn_words(const uint8* r, uint8* turned) {
    uint8 a = LOW2(r[0], r[1]), b = HIGH2(r[0], r[1]), c = LOW2(r[2], r[3]), d = HIGH2(r[2], r[3]);
    uint8 e = LOW2(r[4], r[5]), f = HIGH2(r[4], r[5]), g = LOW2(r[6], r[7]), h = HIGH2(r[6], r[7]);
    uint8 i = LOW4(a, c), j = HIGH4(a, c), k = LOW4(b, d), l = HIGH4(b, d);
    uint8 m = LOW4(e, g), n = HIGH4(e, g), o = LOW4(f, h), p = HIGH4(f, h);
    turned[0] = (uint8)(i.lo, m.lo);
    turned[1] = (uint8)(j.lo, n.lo);
    turned[2] = (uint8)(k.lo, o.lo);
    turned[3] = (uint8)(l.lo, p.lo);
    turned[4] = (uint8)(i.hi, m.hi);
    turned[5] = (uint8)(j.hi, n.hi);
    turned[6] = (uint8)(k.hi, o.hi);
    turned[7] = (uint8)(l.hi, p.hi);
}

/* Words x to x + 7 of a line, of `words` that it has; 0 beyond. */
static uint8 load_words(__global const uint* line, ulong x, ulong words) {
    if (x + SIDE <= words) return *(__global const Words*)(line + x);
    uint8 found = 0;
    uint* lanes = (uint*)&found;
    for (uint lane = 0; x + lane < words; lane++) lanes[lane] = line[x + lane];
    return found;
}

static void store_words(__global uint* line, ulong y, ulong words, uint8 found) {
    if (y + SIDE <= words) {
        *(__global Words*)(line + y) = found;
        return;
    }
    const uint* lanes = (const uint*)&found;
    for (uint lane = 0; y + lane < words; lane++) line[y + lane] = lanes[lane];
}

/* The source has `length` lines of `a_line` words, `step` words apart, for each matrix; the result `columns` lines of
   ceil(length / FIELDS) words, `pitch` words apart. Where matrices begin: `from` and `to`, in words. */
__kernel void turn(__global const uint* words, __global uint* turned, __constant const ulong* from, __constant const ulong* to,
                   ulong offset, ulong length, ulong step, ulong columns, ulong a_line, ulong pitch) {
    ulong x = get_global_id(1) * SIDE, y = get_global_id(0) * SIDE, down = (length + FIELDS - 1u) / FIELDS;
    __global const uint* source = words + offset + walk(get_global_id(2), from);
    __global uint* result = turned + walk(get_global_id(2), to);
    uint8 squares[FIELDS][SIDE];
    for (uint high = 0; high < SIDE; high++) {
        uint8 lines[FIELDS];
        for (uint k = 0; k < FIELDS; k++) {
            ulong line = (y + high) * FIELDS + k;
            lines[k] = line < length ? load_words(source + line * step, x, a_line) : (uint8)0;
        }
        turn_fields(lines);
        for (uint k = 0; k < FIELDS; k++) squares[k][high] = lines[k];
    }
    for (uint k = 0; k < FIELDS; k++) {
        uint8 rows[SIDE];
        turn_words(squares[k], rows);
        for (uint lane = 0; lane < SIDE; lane++) {
            ulong column = (x + lane) * FIELDS + k;
            if (column < columns) store_words(result + column * pitch, y, down, rows[lane]);
        }
    }
}
