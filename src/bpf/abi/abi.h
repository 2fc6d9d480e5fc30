/* SPDX-License-Identifier: GPL-2.0-only */
/* All that both languages read; bindgen starts here. */
#ifndef ARTIS_ABI_H
#define ARTIS_ABI_H

#include "consts.h"
#include "hist.h"
#include "stat.h"
#include "task.h"
#include "record.h"
#include "news.h"
#include "follow.h"
#include "change.h"

#endif /* ARTIS_ABI_H */
