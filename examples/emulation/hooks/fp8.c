/* Conversions between fp32 and the fp8 format of gfx942: a sign, four exponent bits with bias 8,
 * three fraction bits; no infinity and no -0, whose encoding is the only NaN (AMD Instinct MI300
 * ISA, "FP8 and BF8"). Rounds to nearest, ties to even; values that are too large become NaN, as if
 * MODE did not clamp. */

static uint32_t encode(float number)
{
    uint32_t bits = __builtin_bit_cast(uint32_t, number);
    uint32_t sign = bits >> 31, exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    if (exponent == 0xff)
        return 0x80;
    /* Converts to multiples of the smallest number, 2^-10; three fraction bits are kept. */
    int32_t shift = 127 - 8 + 1 - (int32_t)exponent;
    uint32_t drop = 20 + (shift > 0 ? shift : 0);
    if (drop > 25)
        return 0;
    uint32_t value = (exponent ? 0x800000 : 0) | fraction;
    uint32_t kept = value >> drop, lost = value & ((1u << drop) - 1), half = 1u << (drop - 1);
    if (lost > half || (lost == half && kept & 1))
        kept++;
    /* A carry out of the fraction increments the exponent. */
    uint32_t code = shift > 0 ? kept : kept - 8 + (((uint32_t)(1 - shift)) << 3);
    if (code > 0x7f)
        return 0x80;
    return code ? sign << 7 | code : 0;
}

static float decode(uint32_t code)
{
    uint32_t exponent = code >> 3 & 0xf, fraction = code & 7;
    if (code == 0x80)
        return __builtin_bit_cast(float, 0xffc00000u);
    float scale = __builtin_bit_cast(float, (127 - 10 + (exponent ? exponent - 1 : 0)) << 23);
    float number = (float)(exponent ? 8 + fraction : fraction) * scale;
    return code >> 7 ? -number : number;
}

uint32_t to_low(uint32_t dst, float a, float b)
{
    return (dst & 0xffff0000) | encode(a) | encode(b) << 8;
}

uint32_t to_high(uint32_t dst, float a, float b)
{
    return (dst & 0xffff) | encode(a) << 16 | encode(b) << 24;
}

struct pair {
    float low, high;
};

struct pair from_low(uint32_t src)
{
    return (struct pair){decode(src & 0xff), decode(src >> 8 & 0xff)};
}

struct pair from_high(uint32_t src)
{
    return (struct pair){decode(src >> 16 & 0xff), decode(src >> 24)};
}
