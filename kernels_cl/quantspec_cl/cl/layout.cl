/* Layout: numbers to bytes and back, little-endian, dense. LAY-1 to LAY-3.

   `order` walks the stored order to the numbers' own: block scales have the packed and the innermost axis exchanged. */

__kernel void to_bytes(__global const uchar* numbers, uint size, uint bytes, __constant const ulong* order, __global uchar* data,
                       ulong start, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint number = load_code(numbers, size, walk(i, order));
    for (uint k = 0; k < bytes; k++) data[start + i * bytes + k] = (uchar)(number >> (8u * k));
}

__kernel void from_bytes(__global const uchar* data, ulong start, uint bytes, __constant const ulong* order,
                         __global uchar* numbers, uint size, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint number = 0;
    for (uint k = 0; k < bytes; k++) number |= (uint)data[start + i * bytes + k] << (8u * k);
    store_code(numbers, size, walk(i, order), number);
}
