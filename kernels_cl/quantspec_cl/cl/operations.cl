/* Operations: numbers to other places, straight from words to words. OPS-1 to OPS-13.

   Number p of an array is field p % fields of word p / fields; codes and scale codes, a field a word, are the simplest kind.
   Padding counts: from one line of words to the next p grows by whole words. So wherever an operation takes a number from,
   p is linear in the indices of the result, but where a reshape reads padded or exchanged lines: there it is found by
   `source` from the position in row-major order.

   Macros in #ifndef are facts that a planted fault replaces on the command line, to see that the tests notice. */

#ifndef FIELD /* the bit at which a field begins: PAK-4 */
#define FIELD(field, width, fields) ((field) * (width))
#endif
#ifndef EMPTY_WORD /* what a word holds before its codes: PAK-3, PAK-5 */
#define EMPTY_WORD 0u
#endif
#ifndef LINE_OFFSET /* where a line of the result begins in the source */
#define LINE_OFFSET(line, lines) walk(line, lines)
#endif
#ifndef PICKED /* which index a number is taken from: OPS-4 */
#define PICKED(picks, i) picks[i]
#endif

static uint low_bits(uint count) { return count < 32u ? (1u << count) - 1u : 0xFFFFFFFFu; }

/* Numbers p to p + count - 1, side by side from bit 0. */
static uint run_at(__global const uchar* words, uint size, uint width, uint fields, ulong p, uint count) {
    ulong word = quotient_of(p, fields);
    uint skipped = (uint)(p - word * fields), here = fields - skipped;
    uint found = (load_code(words, size, word) & low_bits(fields * width)) >> (skipped * width);
    if (here < count) found |= load_code(words, size, word + 1u) << (here * width);
    return found & low_bits(count * width);
}

static uint number_at(__global const uchar* words, uint size, uint width, uint fields, ulong p) {
    ulong word = fields > 1u ? quotient_of(p, fields) : p;
    return (load_code(words, size, word) >> FIELD((uint)(p - word * fields), width, fields)) & low_bits(width);
}

/* One work-item a word of the result, so that no two write the same byte: the numbers of a line from `start` on, `length` of
   them. A line's numbers lie `step` apart in the source. Where a part begins inside a word, the parts before it have written
   the fields below. `picks` say which index of an axis is taken: of the lines' axis where inner is 0, else of the axis whose
   index changes every `inner` lines. `sign` is the bit that fills the byte where fields become bytes (VAL-4). */
__kernel void move(__global const uchar* from, uint from_size, uint from_width, uint from_fields, __global uchar* to, uint size,
                   uint width, uint fields, uint sign, __constant const ulong* lines, __constant const ulong* targets,
                   uint straight, __constant const ulong* source, __global const ulong* picks, ulong picked, ulong inner,
                   ulong stride, ulong offset, ulong start, ulong length, ulong step, ulong a_line, ulong target, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong line = quotient_of(i, a_line), base = offset + LINE_OFFSET(line, lines);
    if (picked && inner) {
        ulong outer = quotient_of(line, inner);
        base += PICKED(picks, outer - quotient_of(outer, picked) * picked) * stride;
    }
    ulong place = quotient_of(start, fields) + i - line * a_line, at = target + walk(line, targets) + place;
    ulong first = max(start, place * fields), stop = min(start + length, (place + 1u) * fields);
    uint below = (uint)(first - place * fields), word = below ? load_code(to, size, at) & low_bits(below * width) : EMPTY_WORD;
    int copied = straight && step == 1u && from_width == width && !(picked && !inner);
    if (copied && from_fields == fields) {
        word |= run_at(from, from_size, width, fields, base + first - start, (uint)(stop - first)) << (below * width);
        store_code(to, size, at, word);
        return;
    }
    for (ulong k = first; k < stop; k++) {
        ulong p = base + (picked && !inner ? PICKED(picks, k - start) : k - start) * step;
        uint number = number_at(from, from_size, from_width, from_fields, straight ? p : walk(p, source));
        if (number & sign) number |= ~low_bits(from_width);
        word |= (number & low_bits(width)) << FIELD((uint)(k - place * fields), width, fields);
    }
    store_code(to, size, at, word);
}

/* The first element of the box that an element is in. BLK-1 */
static ulong origin_of(ulong i, __constant const ulong* boxes) {
    ulong origin = 0;
    for (uint axis = (uint)boxes[0]; axis-- > 0u;) {
        ulong size = boxes[1 + 4 * axis], extent = boxes[2 + 4 * axis];
        ulong outer = axis ? quotient_of(i, size) : 0, at = i - outer * size;
        origin += quotient_of(at, extent) * extent * boxes[4 + 4 * axis];
        i = outer;
    }
    return origin;
}

/* The first element that is in another block than its box's first element. OPS-9, OPS-11 */
__kernel void first_torn(__constant const ulong* blocks, __constant const ulong* boxes, __global ulong* firsts, ulong n,
                         ulong chunk) {
    FIRST_WHERE(block_of(i, blocks) != block_of(origin_of(i, boxes), blocks))
}
