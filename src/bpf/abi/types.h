/* SPDX-License-Identifier: GPL-2.0-only */
/* Integer names of abi/ and policy/ for bindgen and host compilers; BPF has them from vmlinux.h. */
#pragma once
#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
#ifndef __cplusplus
#include <stdbool.h>
#endif
#endif
