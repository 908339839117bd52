/* a * b + c of 16-bit posits, in the low halves of registers. */

#include "posit16.h"

uint32_t fma_posit16(uint32_t a, uint32_t b, uint32_t c)
{
    return posit16_fma(a, b, c);
}
