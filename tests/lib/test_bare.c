/* SPDX-License-Identifier: Apache-2.0 */
/* test_bare.c: a core, tenants, sessions and jobs without threads. */
#include "tests/lib/test_bare.h"

#include <stdio.h>
#include <stdlib.h>

void test_bare_core_init(struct wharf_core *core, uint32_t n_gpus)
{
    struct wharf_config config;

    wharf_config_init(&config);
    if (wharf_core_init(core, &config, NULL) < 0) {
        fprintf(stderr, "the daemon's centre cannot be made\n");
        abort();
    }
    core->fleet.n_gpus = n_gpus;
    core->fleet.gpus_up = (1u << n_gpus) - 1;
    core->fleet.gpu_engine = WHARF_ENGINE_GPU;
    core->fleet.gpu_codecs = UINT64_MAX;
}

void test_bare_tenant_init(struct wharf_tenant *tenant)
{
    *tenant = (struct wharf_tenant){.quota.weight = 100};
    wharf_list_init(&tenant->starts.sessions);
    wharf_list_init(&tenant->starts.young);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_tenant_init(&tenant->sched[i]);
}

void test_bare_session_init(struct wharf_session *session, struct wharf_tenant *tenant,
                            uint32_t engine)
{
    *session = (struct wharf_session){.tenant = tenant, .engine = (uint8_t)engine};
    wharf_list_init(&session->placing.waiting);
    wharf_list_init(&session->placing.due);
    wharf_list_init(&session->placing.due_link);
    wharf_list_init(&session->placing.held);
    wharf_list_init(&session->placing.held_link);
    wharf_list_init(&session->activity.stale_link);
    wharf_list_init(&session->activity.watch_link);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_session_init(&session->sched[i]);
}

void test_bare_job_init(struct wharf_job *job, struct wharf_session *session, uint32_t codec,
                        uint64_t in_nbytes, uint64_t out_nbytes, struct wharf_region *source,
                        struct wharf_region *destination)
{
    *job = (struct wharf_job){
        .submission = {.opcode = WHARF_OP_DECODE,
                       .codec = (uint8_t)codec,
                       .src_nbytes = in_nbytes,
                       .dst_nbytes = out_nbytes},
        .session = session,
        .source = source,
        .destination = destination,
        .lane = WHARF_LANE_NORMAL,
        .state = WHARF_JOB_QUEUED,
    };
    wharf_list_init(&job->link);
}
