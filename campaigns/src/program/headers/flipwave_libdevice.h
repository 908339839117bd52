/* Functions of NVIDIA's libdevice that libclc calls, by means of the compiler's builtins. */
float __nv_sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
int __nv_isinff(float x) { return __builtin_isinf(x); }
int __nv_isinfd(double x) { return __builtin_isinf(x); }
