/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach.c: looks at a program's file.  Scripts are followed to their interpreter.  An ELF file
 * tells by its program headers whether the dynamic linker starts it, and which; by a note that it
 * is Go's; and by zlib's own words that it has a zlib in it.
 *
 * Files are anybody's: every offset is checked against the file's size.
 */
#include "clientlib/cli/reach.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MAX_INTERPRETERS = 5, MAX_LINE = 256 };

struct file {
    const uint8_t *bytes;
    size_t nbytes;
};

/* ---- where a program is -------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* One folder of PATH, of which the empty one is the current. */
static bool is_in(const char *folder, int folder_nbytes, const char *name, char *ret_path)
{
    int n = snprintf(ret_path, PATH_MAX, "%.*s%s%s", folder_nbytes, folder,
                     folder_nbytes ? "/" : "", name);

    return n < PATH_MAX && is_program(ret_path);
}

int wharf_cli_reach_find(const char *name, char ret_path[PATH_MAX])
{
    const char *folder = getenv("PATH");

    if (strchr(name, '/')) {
        if (snprintf(ret_path, PATH_MAX, "%s", name) >= PATH_MAX)
            return -ENAMETOOLONG;
        if (access(ret_path, F_OK) < 0)
            return -errno;
        return is_program(ret_path) ? 0 : -EACCES;
    }
    if (!folder)
        folder = "/bin:/usr/bin";
    for (const char *end;; folder = end + 1) {
        end = folder + strcspn(folder, ":");
        if (*name && is_in(folder, (int)(end - folder), name, ret_path))
            return 0;
        if (!*end)
            return -ENOENT;
    }
}

/* ---- scripts ------------------------------------------------------------------------------- */

/* Of "#!/usr/bin/env -S name ..." the name, of "#!/bin/sh -e" the path. */
static int find_interpreter(const struct file *file, char ret_path[PATH_MAX])
{
    char line[MAX_LINE + 1], *word, *rest = NULL;
    size_t n = file->nbytes - 2 < MAX_LINE ? file->nbytes - 2 : MAX_LINE;

    memcpy(line, file->bytes + 2, n);
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    word = strtok_r(line, " \t\r", &rest);
    if (!word)
        return -ENOEXEC;
    const char *name = strrchr(word, '/');
    if (strcmp(name ? name + 1 : word, "env") == 0)
        do
            word = strtok_r(NULL, " \t\r", &rest);
        while (word && (*word == '-' || strchr(word, '=')));
    return word ? wharf_cli_reach_find(word, ret_path) : -ENOEXEC;
}

/* ---- ELF ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

static bool is_elf(const struct file *file)
{
    return file->nbytes >= EI_NIDENT && memcmp(file->bytes, ELFMAG, SELFMAG) == 0;
}

/* A part of the file, which may say that it reaches beyond it.  NULL: it does. */
static const uint8_t *part_of(const struct file *file, uint64_t offset, uint64_t nbytes)
{
    return offset <= file->nbytes && nbytes <= file->nbytes - offset ? file->bytes + offset : NULL;
}

/* The next program header of that type from number *i on, copied, with all that it names inside the
 * file; whether there is one. */
static bool find_segment(const struct file *file, uint32_t type, unsigned *i,
                         Elf64_Phdr *ret_segment)
{
    Elf64_Ehdr header;

    memcpy(&header, file->bytes, sizeof(header));
    while (*i < header.e_phnum) {
        const uint64_t at = header.e_phoff + (uint64_t)(*i)++ * sizeof(*ret_segment);
        const uint8_t *segment = part_of(file, at, sizeof(*ret_segment));

        if (!segment)
            return false;
        memcpy(ret_segment, segment, sizeof(*ret_segment));
        if (ret_segment->p_type == type)
            return part_of(file, ret_segment->p_offset, ret_segment->p_filesz) != NULL;
    }
    return false;
}

/* Whether a segment has the note that Go's linker writes, with its build's number. */
static bool has_go_note(const uint8_t *at, uint64_t nbytes)
{
    enum { GO_BUILD_ID = 4 };
    Elf64_Nhdr note;

    while (nbytes >= sizeof(note) + 4) {
        memcpy(&note, at, sizeof(note));
        if (note.n_type == GO_BUILD_ID && note.n_namesz == 4 &&
            memcmp(at + sizeof(note), "Go\0", 4) == 0)
            return true;
        /* Both are filled up to four bytes; neither sum overflows. */
        const uint64_t whole = sizeof(note) + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3)) +
                               (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
        if (whole > nbytes)
            return false;
        at += whole;
        nbytes -= whole;
    }
    return false;
}

static bool is_go(const struct file *file)
{
    Elf64_Phdr segment;
    unsigned i = 0;

    while (find_segment(file, PT_NOTE, &i, &segment))
        if (has_go_note(file->bytes + segment.p_offset, segment.p_filesz))
            return true;
    return false;
}

/* zlib says in one string " inflate 1.2.13 Copyright 1995-2022 Mark Adler ". */
static bool has_zlib(const struct file *file)
{
    static const char words[] = " inflate 1.";
    const uint8_t *at = file->bytes, *end = file->bytes + file->nbytes;

    while ((at = memmem(at, (size_t)(end - at), words, sizeof(words) - 1)) != NULL) {
        const size_t left = (size_t)(end - at);
        const size_t n = strnlen((const char *)at, left < MAX_LINE ? left : MAX_LINE);

        if (memmem(at, n, "Mark Adler", 10))
            return true;
        at += sizeof(words) - 1;
    }
    return false;
}

/* glibc's, without which the library's own symbols are not found. */
static bool is_known_linker(const struct file *file, const Elf64_Phdr *segment)
{
    const char *path = (const char *)file->bytes + segment->p_offset;

    return memmem(path, segment->p_filesz, "/ld-linux", 9) != NULL;
}

static void look_at_elf(const struct file *file, struct wharf_cli_reach *reach)
{
    Elf64_Ehdr header;
    Elf64_Phdr linker;
    unsigned i = 0;

    if (file->nbytes < sizeof(header))
        return;
    memcpy(&header, file->bytes, sizeof(header));
    if (file->bytes[EI_CLASS] != ELFCLASS64 || header.e_machine != OWN_MACHINE) {
        reach->obstacle = "it is a program for another kind of machine";
        reach->is_foreign = true;
    } else if (is_go(file)) {
        reach->obstacle = "it is a Go program, which has an inflater of its own";
    } else if (!find_segment(file, PT_INTERP, &i, &linker)) {
        reach->obstacle = "it is linked statically, and loads no libraries";
    } else if (!is_known_linker(file, &linker)) {
        reach->obstacle = "it is started by another linker than glibc's";
        reach->is_foreign = true;
    } else if (has_zlib(file)) {
        reach->obstacle = "it has a zlib linked in, and does not ask for the shared one";
    }
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Only such as change who runs it: then the dynamic linker leaves LD_PRELOAD out. */
static bool changes_user(const char *path, const struct stat *status)
{
    return ((status->st_mode & S_ISUID) && status->st_uid != getuid()) ||
           ((status->st_mode & S_ISGID) && status->st_gid != getgid()) ||
           (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

static int map_file(const char *path, struct file *ret_file, struct stat *ret_status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
    void *bytes;

    if (fd < 0)
        return -errno;
    if (fstat(fd, ret_status) < 0)
        r = -errno;
    else if (!S_ISREG(ret_status->st_mode) || ret_status->st_size < 2)
        r = -ENOEXEC;
    if (r == 0) {
        bytes = mmap(NULL, (size_t)ret_status->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            r = -errno;
        else
            *ret_file = (struct file){bytes, (size_t)ret_status->st_size};
    }
    close(fd);
    return r;
}

/* Whether `ret_next` is the interpreter to look at instead. */
static bool look_at(const char *path, struct wharf_cli_reach *reach, char ret_next[PATH_MAX])
{
    struct file file = {0};
    struct stat status;
    bool is_script = false;

    if (map_file(path, &file, &status) < 0)
        return false;
    if (memcmp(file.bytes, "#!", 2) == 0)
        is_script = find_interpreter(&file, ret_next) == 0;
    else if (changes_user(path, &status))
        reach->obstacle = "it runs with another user's rights, and the linker preloads nothing";
    else if (is_elf(&file))
        look_at_elf(&file, reach);
    munmap((void *)(uintptr_t)file.bytes, file.nbytes);
    return is_script;
}

int wharf_cli_reach_look(const char *path, struct wharf_cli_reach *ret_reach)
{
    char next[PATH_MAX];

    memset(ret_reach, 0, sizeof(*ret_reach));
    snprintf(ret_reach->program, sizeof(ret_reach->program), "%s", path);
    for (int i = 0; i < MAX_INTERPRETERS; i++) {
        if (!look_at(ret_reach->program, ret_reach, next))
            return 0;
        memcpy(ret_reach->program, next, sizeof(next));
    }
    return -ELOOP;
}
