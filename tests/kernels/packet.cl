// The dispatch packet as seen by the kernel, and the memory at the addresses in the packet.
kernel void packet(global uint *seen) {
    if (get_global_id(0) + get_global_id(1) != 0)
        return;
    constant const uint *packet = (constant const uint *)__builtin_amdgcn_dispatch_ptr();
    for (int i = 0; i < 16; ++i)
        seen[i] = packet[i];
    global const uint *descriptor = (global const uint *)*(constant const ulong *)(packet + 8);
    for (int i = 0; i < 16; ++i)
        seen[16 + i] = descriptor[i];
    global const uint *arguments = (global const uint *)*(constant const ulong *)(packet + 10);
    seen[32] = arguments[0];
    seen[33] = arguments[1];
    *(global ulong *)(seen + 34) = (ulong)seen;
    global const uint *signal = (global const uint *)*(constant const ulong *)(packet + 14);
    for (int i = 0; i < 4; ++i)
        seen[36 + i] = signal[i];
}
