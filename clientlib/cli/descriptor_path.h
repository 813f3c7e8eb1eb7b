/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor_path.h: names under /dev and /proc that stand for a descriptor of this process.
 *
 * What such a name leads to is written to as it is.  A file behind it cannot be replaced: the name
 * is a link of the system's, which stands in no folder of the file's.
 */
#ifndef WHARF_CLI_DESCRIPTOR_PATH_H
#define WHARF_CLI_DESCRIPTOR_PATH_H

/* The descriptor that `path` names: "-", /dev/stdout, /dev/stderr, /dev/fd/N or /proc/self/fd/N;
 * -1 if it names none. */
int wharf_cli_descriptor_of(const char *path);

#endif
