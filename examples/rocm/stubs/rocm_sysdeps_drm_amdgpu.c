/* librocm_sysdeps_drm_amdgpu.so.1: libdrm_amdgpu under another name. */
#define LIBRARY "libdrm_amdgpu.so.1"
#include "forward.h"

FORWARD(amdgpu_bo_cpu_map)
FORWARD(amdgpu_bo_export)
FORWARD(amdgpu_bo_free)
FORWARD(amdgpu_bo_import)
FORWARD(amdgpu_bo_query_info)
FORWARD(amdgpu_bo_set_metadata)
FORWARD(amdgpu_bo_va_op)
FORWARD(amdgpu_device_deinitialize)
FORWARD(amdgpu_device_get_fd)
FORWARD(amdgpu_device_initialize)
FORWARD(amdgpu_get_marketing_name)
FORWARD(amdgpu_query_gpu_info)
