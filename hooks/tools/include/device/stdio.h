/* Declarations for the GPU side of a tool, which only parses host functions. */
#pragma once
#include <stddef.h>
typedef struct flipwave_file FILE;
extern FILE *stdout, *stderr;
int printf(const char *, ...);
int fprintf(FILE *, const char *, ...);
int snprintf(char *, size_t, const char *, ...);
int puts(const char *);
int fputs(const char *, FILE *);
int fflush(FILE *);
