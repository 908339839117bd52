/* Reads a variable that does not change during a dispatch, with scalar loads. */
#define GIVEN(variable) \
    (*(const __attribute__((address_space(4))) __typeof__(variable) *)(uintptr_t)&(variable))
