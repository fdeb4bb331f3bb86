/* Lanes: how many elements a vector holds, and what is called differently for each number of them.

   LANES: 8, or 16 where vectors have 512 bits and it is known that the compiler makes one instruction of an operation on
   sixteen. PoCL 3.0 takes sixteen apart, and aborts on some programs of them. */
#ifndef LANES
#define LANES 8
#endif
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define VECTOR(name) JOINED(name, LANES)

typedef VECTOR(uint) Uints;
typedef VECTOR(int) Ints;
typedef VECTOR(float) Floats;
#define AS_UINTS VECTOR(as_uint)
#define AS_INTS VECTOR(as_int)
#define AS_FLOATS VECTOR(as_float)
#define TO_UINTS VECTOR(convert_uint)
#define TO_INTS VECTOR(convert_int)
#define TO_FLOATS VECTOR(convert_float)
#define LOADED VECTOR(vload)
#define STORE VECTOR(vstore)
#if LANES == 8
#define FOR_EACH_LANE(of) of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)
#else
#define FOR_EACH_LANE(of) of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(a), of(b), of(c), of(d), of(e), of(f)
#endif
