/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_calls: a filter for HDF5, called as HDF5 calls it, without HDF5.
 *
 *     filter_calls PLUGIN decode CHUNK [VALUE...]       its output, or the text of its error and
 * status 1 filter_calls PLUGIN encode CHUNK                  likewise filter_calls PLUGIN damage N
 * CHUNK [VALUE...]     N times with some bytes changed, or less of them filter_calls PLUGIN about
 * its number, and what it offers
 *
 * The filter finds HDF5's functions here, by the address that it returns to.  Each chunk lies in
 * memory of just its size, so that a sanitizer sees what goes beyond.
 */
#include <H5PLextern.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 32, MAX_CHUNK_NBYTES = 64 << 20 };

/* ---- what HDF5 would have ------------------------------------------------------------------- */

hid_t H5E_ERR_CLS_g = 11, H5E_PLINE_g = 22, H5E_CANTFILTER_g = 33;
static char said[1024];
static unsigned n_allocated, n_freed;

herr_t H5get_libversion(unsigned *major, unsigned *minor, unsigned *release)
{
    *major = 1;
    *minor = 14;
    *release = 0;
    return 0;
}

herr_t H5Epush2(hid_t stack, const char *file, const char *function, unsigned line, hid_t cls,
                hid_t major, hid_t minor, const char *format, ...)
{
    va_list arguments;

    (void)line;
    if (stack != H5E_DEFAULT || cls != 11 || major != 22 || minor != 33 || !file || !function)
        abort();
    va_start(arguments, format);
    vsnprintf(said, sizeof(said), format, arguments);
    va_end(arguments);
    return 0;
}

void *H5allocate_memory(size_t nbytes, hbool_t clear)
{
    n_allocated++;
    return clear ? calloc(1, nbytes) : malloc(nbytes);
}

herr_t H5free_memory(void *memory)
{
    n_freed++;
    free(memory);
    return 0;
}

/* ---- one call ------------------------------------------------------------------------------- */

struct chunk {
    uint8_t *bytes;
    size_t nbytes;
    unsigned values[MAX_VALUES];
    size_t n_values;
};

/* Takes the chunk's memory.  Returns output for the caller to free, or NULL and the error. */
static uint8_t *call(const H5Z_class2_t *filter, unsigned flags, struct chunk *chunk,
                     size_t *ret_nbytes)
{
    void *buffer = chunk->bytes;
    size_t buffer_nbytes = chunk->nbytes;

    said[0] = 0;
    n_allocated = n_freed = 0;
    *ret_nbytes = filter->filter(flags, chunk->n_values, chunk->values, chunk->nbytes,
                                 &buffer_nbytes, &buffer);
    if (*ret_nbytes) {
        /* The chunk was freed, and nothing is left beside the output. */
        if (buffer_nbytes != *ret_nbytes || n_allocated != n_freed || said[0])
            abort();
        return buffer;
    }
    if (buffer != chunk->bytes || buffer_nbytes != chunk->nbytes || n_allocated != n_freed ||
        !said[0])
        abort();
    free(chunk->bytes);
    return NULL;
}

static int print_call(const H5Z_class2_t *filter, unsigned flags, struct chunk *chunk)
{
    size_t nbytes;
    uint8_t *out = call(filter, flags, chunk, &nbytes);

    if (!out) {
        fprintf(stderr, "%s\n", said);
        return 1;
    }
    fwrite(out, 1, nbytes, stdout);
    free(out);
    return 0;
}

/* ---- damaged chunks ------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static struct chunk damage(const struct chunk *good, uint32_t *random)
{
    struct chunk bad = *good;
    unsigned n_changes = next_random(random) % 4;

    if (next_random(random) % 4 == 0)
        bad.nbytes = next_random(random) % (good->nbytes + 1);
    bad.bytes = malloc(bad.nbytes ? bad.nbytes : 1);
    memcpy(bad.bytes, good->bytes, bad.nbytes);
    for (unsigned i = 0; i < n_changes && bad.nbytes; i++) {
        /* Headers more often than not. */
        size_t most = next_random(random) % 2 && bad.nbytes > 120 ? 120 : bad.nbytes;
        size_t at = next_random(random) % most;
        bad.bytes[at] = next_random(random) % 3
                            ? (uint8_t)next_random(random)
                            : (uint8_t)(bad.bytes[at] ^ 1u << next_random(random) % 8);
    }
    if (bad.n_values && next_random(random) % 8 == 0)
        bad.values[next_random(random) % bad.n_values] = next_random(random) % 1024;
    return bad;
}

static int damage_often(const H5Z_class2_t *filter, unsigned n, const struct chunk *good)
{
    unsigned n_good = 0;
    uint32_t random = 1;

    for (unsigned i = 0; i < n; i++) {
        struct chunk bad = damage(good, &random);
        size_t nbytes;
        uint8_t *out = call(filter, H5Z_FLAG_REVERSE, &bad, &nbytes);
        n_good += out != NULL;
        free(out);
    }
    printf("%u good, %u bad\n", n_good, n - n_good);
    return 0;
}

/* ---- the command line ----------------------------------------------------------------------- */

static void read_chunk(const char *path, char **values, struct chunk *ret_chunk)
{
    FILE *file = fopen(path, "re");
    uint8_t *bytes = malloc(MAX_CHUNK_NBYTES);

    if (!file || !bytes) {
        perror(path);
        exit(2);
    }
    struct chunk chunk = {.nbytes = fread(bytes, 1, MAX_CHUNK_NBYTES, file)};
    fclose(file);
    chunk.bytes = realloc(bytes, chunk.nbytes ? chunk.nbytes : 1);
    for (; *values && chunk.n_values < MAX_VALUES; values++)
        chunk.values[chunk.n_values++] = (unsigned)strtoul(*values, NULL, 10);
    *ret_chunk = chunk;
}

static const H5Z_class2_t *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    H5PL_type_t (*type)(void) = NULL;
    const void *(*info)(void) = NULL;

    if (library) {
        *(void **)&type = dlsym(library, "H5PLget_plugin_type");
        *(void **)&info = dlsym(library, "H5PLget_plugin_info");
    }
    if (!type || !info || type() != H5PL_TYPE_FILTER) {
        fprintf(stderr, "%s: no plugin with a filter: %s\n", path, dlerror());
        exit(2);
    }
    return info();
}

int main(int argc, char **argv)
{
    const H5Z_class2_t *filter = argc > 2 ? load(argv[1]) : NULL;
    const char *what = argc > 2 ? argv[2] : "";
    struct chunk chunk;

    if (strcmp(what, "about") == 0) {
        printf("%d %s, version %d, encoder %u, decoder %u\n", (int)filter->id, filter->name,
               filter->version, filter->encoder_present, filter->decoder_present);
        return 0;
    }
    if (argc > 3 && strcmp(what, "damage") != 0) {
        read_chunk(argv[3], argv + 4, &chunk);
        return print_call(filter, strcmp(what, "decode") == 0 ? H5Z_FLAG_REVERSE : 0, &chunk);
    }
    if (argc > 4) {
        read_chunk(argv[4], argv + 5, &chunk);
        int status = damage_often(filter, (unsigned)atoi(argv[3]), &chunk);
        free(chunk.bytes);
        return status;
    }
    fputs("usage: filter_calls PLUGIN about | decode | encode | damage N [CHUNK [VALUE...]]\n",
          stderr);
    return 2;
}
