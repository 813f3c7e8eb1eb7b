/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pins.h: a core and the backend of its GPU, whose worker is the test.  So tests see which
 * memory the worker is told to register or release, and choose its answers.
 *
 * Failures end the program.
 */
#ifndef WHARF_TESTS_TEST_PINS_H
#define WHARF_TESTS_TEST_PINS_H

#include "daemon/core/core.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/gpu_memory.h"

enum { TEST_PINS_N_TENANTS = 3, TEST_PINS_PAGE = 4096 };

/* There is only one. */
extern struct test_pins {
    struct wharf_core core;
    struct wharf_tenant tenants[TEST_PINS_N_TENANTS];
    struct wharf_session sessions[TEST_PINS_N_TENANTS]; /* one of each tenant */
    struct wharf_gpu_backend *backend;
    int worker; /* the worker's end of its socket */
    int memfd;  /* one page, which all memory maps */
} test_pins;

void test_pins_set_up(void);
void test_pins_tear_down(void);

/* Adds n_pages of memory of a tenant; or one page of the first tenant. */
struct wharf_gpu_memory *test_pins_add_to(unsigned tenant, bool is_device, unsigned n_pages);
struct wharf_gpu_memory *test_pins_add(bool is_device);

/* The session unregisters it. */
void test_pins_drop(struct wharf_gpu_memory *memory);

/* Does what the GPU's thread does with memory until there is no more to do, at that time or now. */
void test_pins_tend_at(uint64_t now_ns);
void test_pins_tend(void);

/* The number of the next message to the worker, which must be of this kind; 0: none. */
uint32_t test_pins_told(uint32_t kind);

/* The worker answers. */
void test_pins_answer_registered(uint32_t number);
void test_pins_answer_forgotten(uint32_t number);

/* Lets the backend work, and answers, until all of this memory is registered. */
void test_pins_register_all(struct wharf_gpu_memory *memories[], unsigned n);

#endif
