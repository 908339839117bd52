/* Declarations for the GPU side of a tool, which only parses host functions. */
#pragma once
#include <stdint.h>
#define PRIu32 "u"
#define PRIu64 "lu"
#define PRId32 "d"
#define PRId64 "ld"
#define PRIx32 "x"
#define PRIx64 "lx"
