/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that tests/policy calls. Nothing is mocked, for there is nothing in these
 * headers that would need it.
 */
#include "abi/abi.h"
#include "policy/fair.h"
#include "policy/load.h"
#include "policy/predict.h"
#include "policy/room.h"
