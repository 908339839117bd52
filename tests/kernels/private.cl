// An array in private memory whose elements hold their work-item and index.
kernel void keeps(global uint *out) {
    volatile uint array[8];
    uint id = get_global_id(0);
    for (uint place = 0; place < 8; ++place)
        array[place] = id << 8 | place;
    out[id] = array[id & 7];
}
