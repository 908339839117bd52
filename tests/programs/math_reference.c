// The functions of `math.cl` in quadruple precision, from the C library: for each three doubles of
// input, the result as the nearest double and the remaining difference.
#include <stdio.h>
#include <string.h>

#if __LDBL_MANT_DIG__ == 113
typedef long double quad;
#define QUAD(name) name##l
#else
typedef __float128 quad;
#define QUAD(name) name##f128
#endif

#define PI ((quad)0x1.921fb54442d18p1 + (quad)0x1.1a62633145c07p-53 + (quad)-0x1.f1976b7ed8fbcp-109)

#define EACH_UNARY(OF)                                                                            \
    OF(acos) OF(acosh) OF(asin) OF(asinh) OF(atan) OF(atanh) OF(cbrt) OF(cos) OF(cosh) OF(erf)    \
    OF(erfc) OF(exp) OF(exp2) OF(exp10) OF(expm1) OF(lgamma) OF(log) OF(log2) OF(log10)           \
    OF(log1p) OF(sin) OF(sinh) OF(sqrt) OF(tan) OF(tanh) OF(tgamma)
#define EACH_BINARY(OF) OF(atan2) OF(fmod) OF(hypot) OF(pow) OF(remainder)

#define DECLARE_UNARY(name) quad QUAD(name)(quad);
#define DECLARE_BINARY(name) quad QUAD(name)(quad, quad);
EACH_UNARY(DECLARE_UNARY)
EACH_BINARY(DECLARE_BINARY)
quad QUAD(fma)(quad, quad, quad);
quad QUAD(ldexp)(quad, int);
quad QUAD(frexp)(quad, int *);

// Sine and cosine of a multiple of pi, which is reduced exactly.
static quad sinpi(quad x) {
    quad r = QUAD(remainder)(x, 2);
    r = r > (quad)0.5 ? 1 - r : r < (quad)-0.5 ? -1 - r : r;
    return QUAD(sin)(PI * r);
}

static quad cospi(quad x) {
    quad r = QUAD(remainder)(x, 2);
    r = r < 0 ? -r : r;
    return r == (quad)0.5 ? 0 : r < (quad)0.25 ? QUAD(cos)(PI * r) : QUAD(sin)(PI * ((quad)0.5 - r));
}

static quad evaluate(const char *name, quad x, quad y, quad z) {
    int exponent = 0;
#define UNARY(known)                                                                              \
    if (!strcmp(name, #known))                                                                    \
        return QUAD(known)(x);
#define BINARY(known)                                                                             \
    if (!strcmp(name, #known))                                                                    \
        return QUAD(known)(x, y);
#define OTHER(known, value)                                                                       \
    if (!strcmp(name, #known))                                                                    \
        return value;
    EACH_UNARY(UNARY)
    EACH_BINARY(BINARY)
    OTHER(acospi, QUAD(acos)(x) / PI)
    OTHER(asinpi, QUAD(asin)(x) / PI)
    OTHER(atanpi, QUAD(atan)(x) / PI)
    OTHER(sinpi, sinpi(x))
    OTHER(cospi, cospi(x))
    OTHER(tanpi, sinpi(x) / cospi(x))
    OTHER(rsqrt, 1 / QUAD(sqrt)(x))
    OTHER(fma, QUAD(fma)(x, y, z))
    OTHER(ldexp, QUAD(ldexp)(x, (int)y))
    OTHER(frexp, QUAD(frexp)(x, &exponent))
    OTHER(frexp_exponent, (QUAD(frexp)(x, &exponent), (quad)exponent))
    return 0 / (quad)0;
}

int main(int count, char **arguments) {
    double operands[3];
    while (fread(operands, sizeof operands, 1, stdin)) {
        quad exact = evaluate(arguments[1], operands[0], operands[1], operands[2]);
        double nearest = (double)exact;
        double parts[2] = {nearest, (double)(exact - nearest)};
        fwrite(parts, sizeof parts, 1, stdout);
    }
}
