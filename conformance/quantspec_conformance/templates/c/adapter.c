/* A quantspec adapter on the text wire: C99 and libc only. Put your own code where it says HERE. */
#define _POSIX_C_SOURCE 200809L /* dup, dup2, fdopen, getline */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HERE: who you are and what you do. Cases of anything that is not listed are not sent. */
#define HELLO "ok protocol=1.0 name=my-adapter version=0.1 language=C ops=encode,decode,echo values=e2m1,e4m3 modes=symmetric"

/* Mantissa bits, bias, codes of the largest finite number, of infinity, of NaN (0: none), sign bit (VAL-2, VAL-3). */
typedef struct { const char *name; int m, bias; uint32_t largest, infinity, nan, sign; } Format;
static const Format FORMATS[] = { /* HERE: a format more is a row more, and its name among values in HELLO */
    {"e2m1", 1, 1, 0x07, 0, 0, 0x08},
    {"e4m3", 3, 7, 0x7E, 0, 0x7F, 0x80},
};
static const Format BINARY16 = {"", 10, 15, 0x7BFF, 0x7C00, 0x7E00, 0x8000}; /* an input dtype, no value format */
enum { U8, F16 = 2, BF16, F32 = 6 };
static const struct { const char *name; int digits; } DTYPES[] = { /* hexadecimal digits of a pattern */
    {"u8", 2}, {"u16", 4}, {"f16", 4}, {"bf16", 4}, {"u32", 8}, {"i32", 8}, {"f32", 8}, {"f64", 16}};
/* Patterns are integers and never pass through float or double: a host may quiet a NaN or flush a subnormal. */
typedef struct { const char *name, *shape; int dtype; size_t count; uint64_t *bits; } Tensor;

static uint32_t encode(uint32_t x, const Format *f) { /* HERE: call your own kernel */
    uint32_t sign = x >> 31 ? f->sign : 0, magnitude = x & 0x7FFFFFFF;
    if (magnitude > 0x7F800000)
        return f->nan ? sign | f->nan : 0; /* VAL-9, VAL-10 */
    int exponent = (magnitude >> 23 ? (int)(magnitude >> 23) : 1) - 127, least = 1 - f->bias;
    uint64_t significand = (magnitude & 0x7FFFFF) | (magnitude >> 23 ? 0x800000 : 0);
    int shift = 23 - f->m + (exponent < least ? least - exponent : 0);
    shift = shift > 40 ? 40 : shift; /* all of it is far below half of the smallest number */
    uint64_t n = significand >> shift, rest = significand & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    n += rest > half || (rest == half && (n & 1)); /* VAL-6; VAL-7: ties to the even code */
    n += (uint64_t)(exponent > least ? exponent - least : 0) << f->m;
    return sign | (n < f->largest ? (uint32_t)n : f->largest); /* VAL-8; VAL-11: zero keeps its sign */
}

static uint32_t decode(uint32_t code, const Format *f) { /* HERE: call your own kernel */
    uint32_t sign = code & f->sign ? 0x80000000 : 0, magnitude = code & (f->sign - 1);
    if (magnitude == 0 || magnitude > f->largest)
        return magnitude == 0 ? sign : magnitude == f->infinity ? sign | 0x7F800000 : 0x7FC00000; /* VAL-12 */
    int exponent = (int)(magnitude >> f->m), m = f->m;
    uint32_t fraction = (magnitude & ((1u << m) - 1)) | (exponent ? 1u << m : 0);
    for (exponent += !exponent; !(fraction >> m); exponent--) /* a subnormal here is a normal binary32 */
        fraction <<= 1;
    return sign | (uint32_t)(exponent - f->bias + 127) << 23 | (fraction << (23 - m) & 0x7FFFFF);
}

static uint32_t widen(uint32_t x, int dtype) { /* QNT-1: f16 and bf16 as binary32, exactly */
    uint32_t wide = (x & 0x7C00) == 0x7C00 ? (x & 0x8000) << 16 | 0x7F800000 | (x & 0x3FF) << 13 : decode(x, &BINARY16);
    return dtype == F16 ? wide : dtype == BF16 ? x << 16 : x;
}

/* Cut dtype:shape:hex in place. 1: a tensor; 0: something else; -1: a tensor that cannot be read. */
static int parse(char *text, Tensor *t) {
    char *shape = strchr(text, ':'), *hex = shape ? strchr(shape + 1, ':') : NULL;
    if (!hex || strchr(hex + 1, ':')) return 0;
    *shape = *hex++ = 0;
    t->shape = shape + 1;
    for (t->dtype = 0; strcmp(DTYPES[t->dtype].name, text) != 0;)
        if (++t->dtype == sizeof DTYPES / sizeof *DTYPES)
            return 0;
    size_t digits = DTYPES[t->dtype].digits, count = 1;
    for (char *at = ++shape; *at; at += *at == 'x')
        if (*at < '0' || *at > '9' || (count *= strtoull(at, &at, 10)) > 1u << 26)
            return -1;
    if (strlen(hex) != count * digits || strspn(hex, "0123456789ABCDEF") != count * digits)
        return -1;
    t->count = count;
    t->bits = realloc(t->bits, (t->count + 1) * sizeof *t->bits);
    for (size_t i = 0; t->bits && i < t->count; i++) {
        char pattern[17] = "";
        t->bits[i] = strtoull(memcpy(pattern, hex + i * digits, digits), NULL, 16);
    }
    return t->bits ? 1 : -1;
}

static void ok(FILE *out, const char *id, const Tensor *t, int count) {
    fprintf(out, "ok id=%s", id);
    for (; count; count--, t++) {
        fprintf(out, " %s=%s:%s:", t->name, DTYPES[t->dtype].name, t->shape);
        for (size_t i = 0; i < t->count; i++)
            fprintf(out, "%0*" PRIX64, DTYPES[t->dtype].digits, t->bits[i]);
    }
    putc('\n', out);
}

/* encode and decode: the one tensor in, the other out. NULL, or why there is none. */
static const char *convert(int encodes, const Format *f, Tensor *t) {
    if (encodes ? t->dtype != F32 && t->dtype != F16 && t->dtype != BF16 : t->dtype != U8)
        return encodes ? "kind=dtype rule=QNT-1 argument=x" : "kind=dtype rule=VAL-4 argument=codes";
    for (size_t i = 0; i < t->count; i++) {
        if (!encodes && t->bits[i] >= 2 * f->sign)
            return "kind=encoding rule=VAL-5 argument=codes"; /* a byte that is no code */
        t->bits[i] = encodes ? encode(widen((uint32_t)t->bits[i], t->dtype), f) : decode((uint32_t)t->bits[i], f);
    }
    *t = (Tensor){encodes ? "codes" : "y", t->shape, encodes ? U8 : F32, t->count, t->bits};
    return NULL;
}

/* Every message has an answer, also one that nobody here knows: never exit. */
static void answer(FILE *out, char *line) {
    static Tensor tensors[8];
    int count = 0, unknown = 0, broken = 0;
    const char *first = strtok(line, " \n"), *verb = first ? first : "", *refusal;
    const char *id = "0", *op = "", *value = "", *codec = "canonical";
    const char *keys[] = {"id", "op", "value", "codec"}, **words[] = {&id, &op, &value, &codec};
    for (char *key; (key = strtok(NULL, " \n"));) {
        char *text = strchr(key, '=');
        if (text) *text++ = 0;
        int at = 0, got = 0;
        while (at < 4 && strcmp(key, keys[at]) != 0)
            at++;
        if (text && at < 4)
            *words[at] = text;
        else if (text && *key != '_' && count < 8 && (got = parse(text, &tensors[count])) > 0)
            tensors[count++].name = key;
        else if (got < 0 || *key != '_')
            *(got < 0 ? &broken : &unknown) = 1;
    }
    int encodes = strcmp(op, "encode") == 0, echoes = strcmp(op, "echo") == 0, runs = strcmp(verb, "run") == 0;
    const Format *f = FORMATS, *end = f + sizeof FORMATS / sizeof *FORMATS;
    while (f < end && strcmp(f->name, value) != 0)
        f++;
    if (strcmp(verb, "hello") == 0)
        fputs(HELLO "\n", out);
    else if (strcmp(verb, "ping") == 0 || (runs && echoes && !unknown && !broken))
        ok(out, id, tensors, count);
    else if (runs && broken)
        fprintf(out, "failed id=%s message=digits%%20that%%20do%%20not%%20fit\n", id); /* it cannot be read */
    else if (!runs || unknown || !(encodes || strcmp(op, "decode") == 0) || count != 1 || f == end ||
             strcmp(tensors[0].name, encodes ? "x" : "codes") != 0)
        fprintf(out, "unsupported id=%s feature=%s%s%s\n", id, op, *value ? ":" : "", value); /* HERE: more ops, formats */
    else if (strcmp(codec, "canonical") != 0)
        fprintf(out, "rejected id=%s kind=unsupported rule=POL-2 argument=codec\n", id);
    else if ((refusal = convert(encodes, f, tensors)) != NULL)
        fprintf(out, "rejected id=%s %s\n", id, refusal);
    else
        ok(out, id, tensors, 1);
    fflush(out);
}

int main(void) {
    FILE *out = fdopen(dup(1), "w"); /* answers have a descriptor of their own; */
    dup2(2, 1);                      /* what a library prints goes to stderr */
    char *line = NULL; size_t room = 0;
    while (getline(&line, &room, stdin) > 0 && strcmp(line, "stop\n") != 0)
        answer(out, line);
}
