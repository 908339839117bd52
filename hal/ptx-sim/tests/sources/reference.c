// Computes floating-point operations on the host: `reference OPERATION ROUNDING` reads three operands of 64
// bits each and writes a result of 64 bits, until the input ends.

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#pragma STDC FENV_ACCESS ON

typedef union { uint32_t bits; float value; } Single;
typedef union { uint64_t bits; double value; } Double;

static uint64_t single(const char *operation, uint64_t a, uint64_t b, uint64_t c)
{
    volatile Single x = {(uint32_t)a}, y = {(uint32_t)b}, z = {(uint32_t)c}, result = {0};
    if (!strcmp(operation, "add")) result.value = x.value + y.value;
    else if (!strcmp(operation, "sub")) result.value = x.value - y.value;
    else if (!strcmp(operation, "mul")) result.value = x.value * y.value;
    else if (!strcmp(operation, "div")) result.value = x.value / y.value;
    else if (!strcmp(operation, "fma")) result.value = fmaf(x.value, y.value, z.value);
    else if (!strcmp(operation, "rcp")) result.value = 1.0f / x.value;
    else if (!strcmp(operation, "sqrt")) result.value = sqrtf(x.value);
    else if (!strcmp(operation, "from_s32")) result.value = (float)(int32_t)a;
    else if (!strcmp(operation, "from_u64")) result.value = (float)a;
    else if (!strcmp(operation, "from_f64")) { Double d = {a}; volatile double v = d.value; result.value = (float)v; }
    return result.bits;
}

static uint64_t twice(const char *operation, uint64_t a, uint64_t b, uint64_t c)
{
    volatile Double x = {a}, y = {b}, z = {c}, result = {0};
    if (!strcmp(operation, "add")) result.value = x.value + y.value;
    else if (!strcmp(operation, "sub")) result.value = x.value - y.value;
    else if (!strcmp(operation, "mul")) result.value = x.value * y.value;
    else if (!strcmp(operation, "div")) result.value = x.value / y.value;
    else if (!strcmp(operation, "fma")) result.value = fma(x.value, y.value, z.value);
    else if (!strcmp(operation, "rcp")) result.value = 1.0 / x.value;
    else if (!strcmp(operation, "sqrt")) result.value = sqrt(x.value);
    else if (!strcmp(operation, "from_s64")) result.value = (double)(int64_t)a;
    else if (!strcmp(operation, "from_u64")) result.value = (double)a;
    return result.bits;
}

int main(int count, char **arguments)
{
    const char *operation = arguments[1];
    int is_double = arguments[2][0] == 'd';
    uint64_t operands[3];
    switch (arguments[3][1]) {
    case 'z': fesetround(FE_TOWARDZERO); break;
    case 'm': fesetround(FE_DOWNWARD); break;
    case 'p': fesetround(FE_UPWARD); break;
    }
    while (fread(operands, sizeof operands, 1, stdin) == 1) {
        uint64_t result = (is_double ? twice : single)(operation, operands[0], operands[1], operands[2]);
        fwrite(&result, sizeof result, 1, stdout);
    }
    return count == 0;
}
