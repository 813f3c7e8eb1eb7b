/* SPDX-License-Identifier: Apache-2.0 */
/* bench_crew.h: threads that are started once and wait for what to do, so that starting them is not
 * measured. */
#ifndef WHARF_TESTS_BENCH_CREW_H
#define WHARF_TESTS_BENCH_CREW_H

enum { BENCH_MAX_THREADS = 256 };

/* So many, the calling one among them.  Ends the program when that does not work. */
void bench_crew_start(unsigned n_threads);

/* Each does its part, by its number, the calling one 0.  Returns when all have. */
void bench_crew_run(void (*part)(void *context, unsigned thread), void *context);

void bench_crew_stop(void);

#endif
