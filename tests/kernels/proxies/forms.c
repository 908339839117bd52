/* Semantics of the instructions of `forms.cl`. */

uint32_t literal(uint32_t src) { return src * 3 + 1; }
uint32_t three(uint32_t a, uint32_t b, uint32_t c) { return (a ^ b) + c; }
uint32_t scalar(uint32_t src) { return __builtin_popcount(src); }
uint64_t wide_scalar(uint64_t src) { return __builtin_bswap64(src); }
struct two { uint32_t low, high; };
struct two packed(struct two a, struct two b) { return (struct two){a.low + b.low, a.high - b.high}; }
uint32_t number(uint32_t imm, uint32_t src) { return src << (imm & 7) | src >> 27; }
struct four { uint32_t at[4]; };
struct four updated(struct four acc, uint32_t a, uint32_t b)
{
    return (struct four){{acc.at[0] + a, acc.at[1] + b, acc.at[2] * a, acc.at[3] * b}};
}
