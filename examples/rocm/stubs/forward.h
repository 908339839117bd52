/* Functions that jump to those of the same name in another library, with all their arguments. x86-64 only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define FORWARD(name)                                                                              \
    __attribute__((visibility("hidden"))) void *target_##name;                                     \
    __attribute__((naked)) void name(void) {                                                       \
        __asm__("jmp *target_" #name "(%rip)");                                                    \
    }                                                                                              \
    __attribute__((constructor)) static void find_##name(void) {                                   \
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);                                    \
        target_##name = library ? dlsym(library, #name) : NULL;                                    \
        if (!target_##name) {                                                                      \
            fprintf(stderr, "%s has no %s\n", LIBRARY, #name);                                     \
            abort();                                                                               \
        }                                                                                          \
    }
