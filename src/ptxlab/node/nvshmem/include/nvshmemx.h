// In place of NVSHMEM's own file, whose device functions need what is in ours.
#pragma once
#include "nvshmem.h"
#include_next <nvshmemx.h>
