/* Repack, fast: words of four bytes, eight at a time. OPS-1 to OPS-13.

   WIDTH is the bits of a field; a word is whole fields. Words are loaded and stored with a plain pointer, since PoCL calls vload8
   as a function. */
#pragma OPENCL FP_CONTRACT OFF

#define FIELDS (32 / WIDTH)
#define SIDE 8 /* words of a vector */

typedef uint8 Words __attribute__((aligned(4)));

/* Exchanges blocks of s x s fields of lines i and i + s: of each pair, the high one of the first and the low one of the second. */
static void exchange(uint8* lines, uint s) {
    uint shift = s * WIDTH, mask = 0xFFFFFFFFu / ((1u << shift) + 1u);
#pragma unroll
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

/* Lane y of turned[x] is lane x of row y. */
static void turn_words(const uint8* r, uint8* turned) {
    uint8 a = LOW_ONES(r[0], r[1]), b = HIGH_ONES(r[0], r[1]), c = LOW_ONES(r[2], r[3]), d = HIGH_ONES(r[2], r[3]);
    uint8 e = LOW_ONES(r[4], r[5]), f = HIGH_ONES(r[4], r[5]), g = LOW_ONES(r[6], r[7]), h = HIGH_ONES(r[6], r[7]);
    uint8 i = LOW_TWOS(a, c), j = HIGH_TWOS(a, c), k = LOW_TWOS(b, d), l = HIGH_TWOS(b, d);
    uint8 m = LOW_TWOS(e, g), n = HIGH_TWOS(e, g), o = LOW_TWOS(f, h), p = HIGH_TWOS(f, h);
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

/* Lines that run down become lines that run across. The source has `length` lines of `a_line` words, `step` words apart, for
   each matrix; the result `columns` lines of ceil(length / FIELDS) words, `pitch` words apart. Where matrices begin: `from` and
   `to`, in words.

   A work-item takes 8 * ACROSS words of FIELDS * 8 * DOWN lines. FIELDS lines of 8 words are turned at once, a lane a square of
   FIELDS x FIELDS; then 8 x 8 words. Lines of the source beyond the last are read as 0, which is what padding is. How far the
   lines that a work-item touches lie apart is what it waits for, so it takes as many words of each as it can hold. */
__attribute__((vec_type_hint(uint8))) /* the vectors are explicit: Intel's runtime would take them apart */
__kernel void turn(__global const uint* words, __global uint* turned, __constant const ulong* from, __constant const ulong* to,
                   ulong offset, ulong length, ulong step, ulong columns, ulong a_line, ulong pitch) {
    ulong x = get_global_id(1) * SIDE * ACROSS, y = get_global_id(0) * SIDE * DOWN, down = (length + FIELDS - 1u) / FIELDS;
    __global const uint* source = words + offset + walk(get_global_id(2), from);
    __global uint* result = turned + walk(get_global_id(2), to);
    uint8 squares[ACROSS][FIELDS][SIDE * DOWN];
    for (uint high = 0; high < SIDE * DOWN; high++) {
        for (uint w = 0; w < ACROSS; w++) {
            uint8 lines[FIELDS];
#pragma unroll
            for (uint k = 0; k < FIELDS; k++) {
                ulong line = (y + high) * FIELDS + k;
                lines[k] = line < length ? load_words(source + line * step, x + w * SIDE, a_line) : (uint8)0;
            }
            turn_fields(lines);
#pragma unroll
            for (uint k = 0; k < FIELDS; k++) squares[w][k][high] = lines[k];
        }
    }
    for (uint w = 0; w < ACROSS; w++) {
        for (uint k = 0; k < FIELDS; k++) {
            uint8 rows[DOWN][SIDE];
#pragma unroll
            for (uint v = 0; v < DOWN; v++) turn_words(squares[w][k] + v * SIDE, rows[v]);
#pragma unroll
            for (uint lane = 0; lane < SIDE; lane++) {
                ulong column = (x + w * SIDE + lane) * FIELDS + k;
                if (column >= columns) continue;
                for (uint v = 0; v < DOWN; v++) store_words(result + column * pitch, y + v * SIDE, down, rows[v][lane]);
            }
        }
    }
}

/* The fields from p on that a word of the result takes, `count` of them; a word of the source begins where p does, or before. */
static uint run_of(__global const uint* words, ulong p, uint count) {
    ulong word = p / FIELDS;
    uint skipped = (uint)(p % FIELDS), found = words[word] >> (skipped * WIDTH);
    if (FIELDS - skipped < count) found |= words[word + 1u] << ((FIELDS - skipped) * WIDTH);
    return count < FIELDS ? found & ((1u << (count * WIDTH)) - 1u) : found;
}

/* Lines whose fields follow one another in the source too: `length` fields of each go to fields `start` and on of a line of the
   result. A work-item takes 8 * PIECE words of a line. Where a part begins inside a word, the parts before it have written the
   fields below. `lines` in fields of the source, `targets` and `target` in words of the result; `picks` as in operations.cl. */
__attribute__((vec_type_hint(uint8)))
__kernel void copy_lines(__global const uint* words, __global uint* copied, __constant const ulong* lines,
                         __constant const ulong* targets, __global const ulong* picks, ulong picked, ulong inner, ulong stride,
                         ulong offset, ulong start, ulong length, ulong target) {
    ulong line = get_global_id(1), first = start / FIELDS, stop = (start + length + FIELDS - 1u) / FIELDS;
    ulong p = offset + walk(line, lines) - start; /* what field 0 of the line would be */
    if (picked) p += picks[line / inner % picked] * stride;
    __global uint* result = copied + target + walk(line, targets);
    ulong word = first + get_global_id(0) * (SIDE * PIECE), last = min(word + SIDE * PIECE, stop);
    if (start % FIELDS && word == first) {
        uint below = (uint)(start % FIELDS);
        uint kept = result[word] & ((1u << (below * WIDTH)) - 1u);
        result[word] = kept | run_of(words, p + start, (uint)min(length, (ulong)(FIELDS - below))) << (below * WIDTH);
        word++;
    }
    ulong from = (p + word * FIELDS) / FIELDS;
    uint skipped = (uint)((p + word * FIELDS) % FIELDS) * WIDTH;
    ulong whole = min(last, (start + length) / FIELDS);
    for (; word + SIDE <= whole; word += SIDE, from += SIDE) {
        uint8 found = *(__global const Words*)(words + from);
        if (skipped) found = (found >> skipped) | (*(__global const Words*)(words + from + 1u) << (32u - skipped));
        *(__global Words*)(result + word) = found;
    }
    for (; word < last; word++) {
        result[word] = run_of(words, p + word * FIELDS, (uint)min((ulong)FIELDS, start + length - word * FIELDS));
    }
}
