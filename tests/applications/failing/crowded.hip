// One workgroup more than the device keeps resident meets the others at a barrier: none can end.
#include "../grid_barrier.h"

int main() {
    meet(resident_blocks() + 1);
    return passed();
}
