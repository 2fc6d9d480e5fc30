/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The integer names that every header of abi/ and policy/ uses, whoever
 * compiles it: BPF (vmlinux.h has them already), bindgen, or a host compiler.
 */
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
