/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wharf_job.h"

static const char *const engine_names[] = {
    [WHARF_ENGINE_AUTO] = "auto",           [WHARF_ENGINE_CPU] = "cpu",
    [WHARF_ENGINE_REFERENCE] = "reference", [WHARF_ENGINE_GPU] = "gpu",
    [WHARF_ENGINE_SIMT] = "simt",
};
enum { N_ENGINES = sizeof(engine_names) / sizeof(engine_names[0]) };

const char *wharf_engine_name(uint32_t engine)
{
    return engine < N_ENGINES ? engine_names[engine] : "unknown";
}
