/* librocm_sysdeps_drm.so.2: libdrm under another name. */
#define LIBRARY "libdrm.so.2"
#include "forward.h"

FORWARD(drmCommandWriteRead)
FORWARD(drmIoctl)
FORWARD(drmSyncobjCreate)
FORWARD(drmSyncobjDestroy)
