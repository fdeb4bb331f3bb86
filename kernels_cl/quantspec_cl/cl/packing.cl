/* Packing: codes to words and back. PAK-1 to PAK-8, VAL-4.

   `lines` walks the stored order's lines to the offset of their first code (the packed axis exchanged with the innermost);
   codes of a line lie `step` apart in tensor order. A word is 1 or 4 bytes in memory; one of three bytes is held in four. */

/* One work-item a word, so that no two write the same byte. PAK-2 to PAK-6 */
__kernel void pack(__constant const Format* formats, uint value, __global const uchar* codes, __global uchar* words, uint size,
                   uint width, uint fields, __constant const ulong* lines, ulong length, ulong step, ulong a_line, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong line = quotient_of(i, a_line), first = (i - line * a_line) * fields, offset = walk(line, lines);
    uint mask = (1u << width) - 1u, count = (uint)min((ulong)fields, length - first), word = 0;
    for (uint field = 0; field < count; field++) {
        word |= (codes[offset + (first + field) * step] & mask) << (field * width);
    }
    store_code(words, size, i, word);
}

/* One work-item a word writes that word's codes. PAK-2, PAK-4, VAL-4 */
__kernel void unpack(__constant const Format* formats, uint value, uint entries, __global const uchar* words, uint size,
                     uint width, uint fields, __global uchar* codes, __constant const ulong* lines, ulong length, ulong step,
                     ulong a_line, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    __constant const Format* f = formats + value;
    ulong line = quotient_of(i, a_line), first = (i - line * a_line) * fields, offset = walk(line, lines);
    uint mask = (1u << width) - 1u, count = (uint)min((ulong)fields, length - first), word = load_code(words, size, i);
    for (uint field = 0; field < count; field++) {
        uint code = (word >> (field * width)) & mask;
        if (mask == f->mask) code = extend(code, f, entries); /* a whole native byte stays as it is, to be checked */
        codes[offset + (first + field) * step] = (uchar)code;
    }
}

/* The bits of word i that hold no code and are not 0: padding fields and bits above the last field. PAK-3, PAK-5 */
static uint dirt(__global const uchar* words, uint size, uint width, uint fields, ulong length, ulong a_line, ulong i) {
    ulong first = (i - quotient_of(i, a_line) * a_line) * fields;
    uint used = (uint)min((ulong)fields, length - first) * width, word = load_code(words, size, i);
    return used < 32u ? word >> used << used : 0u;
}

/* Whether a word of four bytes sets one of the bits above the last field: every writer writes the same. PAK-5 */
__kernel void any_unused_bit(__global const uint* words, uint unused, __global uint* dirty, ulong n, ulong chunk) {
    ulong start = (ulong)get_global_id(0) * chunk, stop = min(start + chunk, n);
    uint found = 0;
    for (ulong i = start; i < stop; i++) found |= words[i];
    if (found & unused) dirty[0] = 1u;
}

/* Whether the last word of a line sets a bit that holds no code. PAK-3 */
__kernel void any_dirty_end(__global const uchar* words, uint size, uint width, uint fields, ulong length, ulong a_line,
                            __global uint* dirty, ulong n) {
    ulong line = get_global_id(0);
    if (line < n && dirt(words, size, width, fields, length, a_line, (line + 1u) * a_line - 1u)) dirty[0] = 1u;
}

/* The first word with such bits. PAK-7 */
__kernel void first_dirty_word(__global const uchar* words, uint size, uint width, uint fields, ulong length, ulong a_line,
                               __global ulong* firsts, ulong n, ulong chunk) {
    FIRST_WHERE(dirt(words, size, width, fields, length, a_line, i))
}

__kernel void lowest_dirty_bit(__global const uchar* words, uint size, uint width, uint fields, ulong length, ulong a_line,
                               ulong i, __global uint* bit) {
    if (get_global_id(0) > 0) return;
    uint found = dirt(words, size, width, fields, length, a_line, i);
    bit[0] = 31u - clz(found & -found);
}
