/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_poison.c: wharfd-poison, the daemon in whose GPU jobs can ask for faults. */
#include "daemon/gpu/gpu_state.h"
#include "tests/lib/test_poison.h"

TEST_POISON_TAKEN
