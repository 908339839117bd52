// Workgroups that wait for all others at a barrier in global memory: nine, many, and as many as the
// device keeps resident.
#include "grid_barrier.h"

#include <algorithm>

int main() {
    meet(9);
    meet(std::min(64, resident_blocks()));
    meet(resident_blocks());
    return passed();
}
