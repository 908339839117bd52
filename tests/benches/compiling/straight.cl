// A loop whose body is a long row of vector instructions, like unrolled code of libraries. They have four
// bytes each, so that the backward branch can span them. No part of the row repeats.
#define TEXT_OF(text) #text
#define TEXT(text) TEXT_OF(text)

#define FIRST "v[32 + i %% 13]"
#define SECOND "v[32 + (i / 3) %% 11]"
#define THIRD "v[32 + (i / 7) %% 14]"
#ifdef INTEGERS
#define BODY                                                                                              \
    "v_add_u32_e32 " FIRST ", " SECOND ", " FIRST "\n"                                                    \
    "v_lshlrev_b32_e32 v46, 3, " FIRST "\n"                                                               \
    "v_xor_b32_e32 " THIRD ", v46, " THIRD "\n"                                                           \
    "v_sub_u32_e32 " SECOND ", " SECOND ", " THIRD "\n"                                                   \
    "v_lshrrev_b32_e32 v46, 5, " SECOND "\n"                                                              \
    "v_xor_b32_e32 " FIRST ", v46, " FIRST "\n"                                                           \
    "v_mul_u32_u24_e32 v46, 7, " THIRD "\n"                                                               \
    "v_add_u32_e32 " SECOND ", v46, " SECOND "\n"
#else
#define BODY                                                                                              \
    "v_mul_f32_e32 " FIRST ", 0.5, " FIRST "\n"                                                           \
    "v_add_f32_e32 " FIRST ", 1.0, " FIRST "\n"                                                           \
    "v_mul_f32_e32 v46, " FIRST ", " SECOND "\n"                                                          \
    "v_min_f32_e32 " THIRD ", v46, " THIRD "\n"                                                           \
    "v_fmac_f32_e32 " THIRD ", 0.5, " FIRST "\n"                                                          \
    "v_sub_f32_e32 " SECOND ", " THIRD ", " SECOND "\n"                                                   \
    "v_mul_f32_e32 " SECOND ", 0.5, " SECOND "\n"                                                         \
    "v_max_f32_e32 " SECOND ", -1.0, " SECOND "\n"
#endif

kernel void straight(global uint *out, int turns) {
    uint item = get_global_id(0), result;
    __asm__ volatile(".set i, 0\n .rept 15\n v_mul_u32_u24_e32 v[32 + i], i + 3, %0\n"
                     "v_cvt_f32_u32_e32 v[32 + i], v[32 + i]\n .set i, i + 1\n .endr"
                     :: "v"(item) : "v32", "v33", "v34", "v35", "v36", "v37", "v38", "v39", "v40", "v41",
                     "v42", "v43", "v44", "v45", "v46");
    for (int turn = 0; turn < turns; ++turn)
        __asm__ volatile(".set i, 0\n .rept " TEXT(EIGHTHS) "\n" BODY ".set i, i + 1\n .endr" ::: "v32");
    __asm__ volatile("v_xor_b32_e32 %0, v32, v40" : "=v"(result));
    out[item] = result;
}
