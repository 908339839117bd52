/* libamd_smi.so.26 without system management: every call returns "not supported", about which JAX prints a warning. */
enum { NOT_SUPPORTED = 2 };

#define UNSUPPORTED(name)                                                                          \
    int name(void) {                                                                               \
        return NOT_SUPPORTED;                                                                      \
    }

UNSUPPORTED(amdsmi_get_gpu_metrics_info)
UNSUPPORTED(amdsmi_get_pcie_info)
UNSUPPORTED(amdsmi_get_processor_handle_from_bdf)
UNSUPPORTED(amdsmi_get_processor_handles)
UNSUPPORTED(amdsmi_get_processor_type)
UNSUPPORTED(amdsmi_get_socket_handles)
UNSUPPORTED(amdsmi_get_xgmi_info)
UNSUPPORTED(amdsmi_init)
UNSUPPORTED(amdsmi_topo_get_link_type)

int amdsmi_status_code_to_string(int status, const char **text) {
    (void)status;
    *text = "not supported";
    return 0;
}
