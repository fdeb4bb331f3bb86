/* Containers: codes in words and scales in streams, where stacks differ. PAK-7, POL-14 to POL-17. */
#ifndef BIASED /* a field of a code: moved by half the range, or not. POL-14 */
#define BIASED(code, bias) ((code) + (bias))
#endif
#ifndef ROWS_APART /* bytes from a row of a tile to the next, of rows 32 apart. POL-16 */
#define ROWS_APART 4u
#endif
#define TILE_ROWS 128u
#define TILE_COLUMNS 4u
#define TILE 512u

/* A container is [dense, width, fields, group, bias, place of each field, field of each place]: the codes of a word are
   `group` places apart, so that a group of words shares them. `order` walks the words from stored order to where they lie. */
enum { BOX_DENSE, BOX_WIDTH, BOX_FIELDS, BOX_GROUP, BOX_BIAS, BOX_LISTS };

__kernel void pack_by(__global const uchar* codes, __global uchar* words, uint size, __constant const ulong* box,
                      __constant const ulong* lines, __constant const ulong* order, ulong length, ulong step, ulong a_line, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong line = quotient_of(i, a_line), k = i - line * a_line, offset = walk(line, lines);
    uint width = (uint)box[BOX_WIDTH], fields = (uint)box[BOX_FIELDS], mask = (1u << width) - 1u, word = 0;
    uint bias = (uint)box[BOX_BIAS];
    if (box[BOX_DENSE]) {
        ulong low = 32u * k; /* the first bit of this word */
        for (ulong place = quotient_of(low, width); place < length && place * width < low + 32u; place++) {
            uint field = BIASED((uint)codes[offset + place * step], bias) & mask;
            ulong bit = place * width;
            word |= bit >= low ? field << (uint)(bit - low) : field >> (uint)(low - bit);
        }
    } else {
        ulong group = box[BOX_GROUP], outer = quotient_of(k, group), first = outer * group * fields + k - outer * group;
        for (uint at = 0; at < fields; at++) {
            ulong place = first + box[BOX_LISTS + at] * group;
            if (place < length) word |= (BIASED((uint)codes[offset + place * step], bias) & mask) << (at * width);
        }
    }
    store_code(words, size, walk(i, order), word);
}

/* One work-item a code, in stored order. */
__kernel void unpack_by(__constant const Format* formats, uint value, uint entries, __global const uchar* words, uint size,
                        __constant const ulong* box, __constant const ulong* lines, __constant const ulong* order,
                        __global uchar* codes, ulong length, ulong step, ulong a_line, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong line = quotient_of(i, length), place = i - line * length;
    uint width = (uint)box[BOX_WIDTH], fields = (uint)box[BOX_FIELDS], mask = (1u << width) - 1u, code;
    if (box[BOX_DENSE]) {
        ulong bit = place * width, k = bit >> 5;
        uint shift = (uint)bit & 31u;
        code = load_code(words, size, walk(line * a_line + k, order)) >> shift;
        if (shift + width > 32u) code |= load_code(words, size, walk(line * a_line + k + 1u, order)) << (32u - shift);
    } else {
        ulong group = box[BOX_GROUP], whole = group * fields, outer = quotient_of(place, whole), rest = place - outer * whole;
        ulong within = quotient_of(rest, group), k = outer * group + rest - within * group;
        uint at = (uint)box[BOX_LISTS + fields + (uint)within];
        code = load_code(words, size, walk(line * a_line + k, order)) >> (at * width);
    }
    code = BIASED(code, (uint)box[BOX_BIAS]) & mask;
    if (mask == formats[value].mask) code = extend(code, formats + value, entries);
    codes[walk(line, lines) + place * step] = (uchar)code;
}

/* The first word that is not the one its codes give. PAK-7 */
__kernel void first_other_word(__global const uchar* words, __global const uchar* clean, uint size, __global ulong* firsts, ulong n,
                               ulong chunk) {
    FIRST_WHERE(load_code(words, size, i) != load_code(clean, size, i))
}

/* Numbers to bytes that lie as `places` says: scales among words. POL-17 */
__kernel void bytes_at(__global const uchar* numbers, uint size, uint bytes, __constant const ulong* places, __global uchar* data,
                       ulong start, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint number = load_code(numbers, size, i);
    ulong at = start + walk(i, places);
    for (uint k = 0; k < bytes; k++) data[at + k] = (uchar)(number >> (8u * k));
}

__kernel void numbers_at(__global const uchar* data, ulong start, uint bytes, __constant const ulong* places, __global uchar* numbers,
                         uint size, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint number = 0;
    ulong at = start + walk(i, places);
    for (uint k = 0; k < bytes; k++) number |= (uint)data[at + k] << (8u * k);
    store_code(numbers, size, i, number);
}

/* The scale that byte i of the tiles holds, row-major; NOWHERE for padding. POL-16 */
static ulong tiled(ulong i, ulong lines, ulong columns) {
    ulong across = (columns + TILE_COLUMNS - 1u) / TILE_COLUMNS, tile = i / TILE, down = quotient_of(tile, across);
    uint rest = (uint)(i - tile * TILE), inside = rest & 15u;
    uint apart = ROWS_APART == 4u ? inside >> 2 : inside & 3u, beside = ROWS_APART == 4u ? inside & 3u : inside >> 2;
    ulong row = down * TILE_ROWS + (rest >> 4) + 32u * apart, column = (tile - down * across) * TILE_COLUMNS + beside;
    return row < lines && column < columns ? row * columns + column : NOWHERE;
}

__kernel void swizzle(__global const uchar* scales, __global uchar* data, ulong start, ulong lines, ulong columns, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong at = tiled(i, lines, columns);
    data[start + i] = at == NOWHERE ? (uchar)0 : scales[at];
}

__kernel void unswizzle(__global const uchar* data, ulong start, __global uchar* scales, ulong lines, ulong columns, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong at = tiled(i, lines, columns);
    if (at != NOWHERE) scales[at] = data[start + i];
}

/* The first byte of the tiles that holds no scale and is not 0. PAK-7 */
__kernel void first_dirty_byte(__global const uchar* data, ulong tiles, ulong lines, ulong columns, __global ulong* firsts, ulong n,
                               ulong chunk) {
    FIRST_WHERE(tiled(i, lines, columns) == NOWHERE && data[tiles + i] != 0)
}
