/* librocprofiler-sdk.so.1 without a profiler: every call succeeds and does nothing. */
#define NOTHING(name)                                                                              \
    int name(void) {                                                                               \
        return 0;                                                                                  \
    }

NOTHING(rocprofiler_assign_callback_thread)
NOTHING(rocprofiler_configure_buffer_tracing_service)
NOTHING(rocprofiler_configure_callback_tracing_service)
NOTHING(rocprofiler_configure_external_correlation_id_request_service)
NOTHING(rocprofiler_context_is_valid)
NOTHING(rocprofiler_create_buffer)
NOTHING(rocprofiler_create_callback_thread)
NOTHING(rocprofiler_create_context)
NOTHING(rocprofiler_flush_buffer)
NOTHING(rocprofiler_force_configure)
NOTHING(rocprofiler_get_timestamp)
NOTHING(rocprofiler_iterate_callback_tracing_kind_operations)
NOTHING(rocprofiler_iterate_callback_tracing_kinds)
NOTHING(rocprofiler_query_available_agents)
NOTHING(rocprofiler_query_callback_tracing_kind_name)
NOTHING(rocprofiler_query_callback_tracing_kind_operation_name)
NOTHING(rocprofiler_start_context)
NOTHING(rocprofiler_stop_context)

const char *rocprofiler_get_status_string(int status) {
    (void)status;
    return "no profiler";
}
