/* SPDX-License-Identifier: GPL-2.0-only */
/* All that both languages read; bindgen starts here. */
#pragma once

#include "consts.h"
#include "hist.h"
#include "stat.h"
#include "task.h"
#include "record.h"
#include "news.h"
#include "follow.h"
#include "change.h"
