/* libroctracer64.so.4 without a tracer. */
void roctracer_start(void) {}

void roctracer_stop(void) {}
