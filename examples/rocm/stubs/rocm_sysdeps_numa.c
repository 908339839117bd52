/* librocm_sysdeps_numa.so.1: libnuma under another name. */
#define LIBRARY "libnuma.so.1"
#include "forward.h"

FORWARD(mbind)
FORWARD(numa_available)
FORWARD(numa_bitmask_alloc)
FORWARD(numa_bitmask_free)
FORWARD(numa_bitmask_setbit)
FORWARD(numa_max_node)
FORWARD(numa_node_size64)
