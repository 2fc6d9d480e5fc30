/* SPDX-License-Identifier: GPL-2.0-only */
/* Everything that both BPF and Rust read; the input of bindgen. */
#pragma once
#include "consts.h"
#include "hist.h"
#include "stat.h"
#include "task.h"
#include "record.h"
#include "news.h"
#include "follow.h"
#include "change.h"
