/* A quantized matrix, read where it lies, words or codes. PAK-2 to PAK-4.

   Lines: [word bytes, field bits, fields a word, words a line, 1 where they run along the first axis]. */

/* The code of row k, column n. PAK-2 to PAK-4, VAL-4 */
static uint code_at(__global const uchar* words, __constant const ulong* lines, ulong k, ulong n, __constant const Format* f,
                    uint entries) {
    uint width = (uint)lines[1], fields = (uint)lines[2];
    ulong line = lines[4] ? n : k, place = lines[4] ? k : n, word = quotient_of(place, fields);
    uint field = load_code(words, (uint)lines[0], line * lines[3] + word) >> ((uint)(place - word * fields) * width);
    uint mask = (1u << width) - 1u;
    return mask == f->mask ? extend(field & mask, f, entries) : field & mask; /* a native byte is a code already */
}
