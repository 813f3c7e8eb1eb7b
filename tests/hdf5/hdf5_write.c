/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_write OUT.h5 NAME FILTER NBYTES CHUNK [VALUE...]: adds a dataset of NBYTES bytes, which are
 * one chunk, that some encoder's output is written to as it is.  No filter is run.
 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_VALUES = 32, MAX_CHUNK_NBYTES = 64 << 20 };

static void check(int64_t result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "hdf5_write: %s failed\n", what);
    exit(1);
}

int main(int argc, char **argv)
{
    static unsigned char bytes[MAX_CHUNK_NBYTES];
    unsigned values[MAX_VALUES];
    size_t n_values = 0;
    hsize_t start = 0;

    if (argc < 6)
        return 2;
    hsize_t size = strtoull(argv[4], NULL, 10);
    FILE *in = fopen(argv[5], "re");
    check(in ? 0 : -1, argv[5]);
    size_t nbytes = fread(bytes, 1, sizeof(bytes), in);
    fclose(in);
    for (int i = 6; i < argc && n_values < MAX_VALUES; i++)
        values[n_values++] = (unsigned)strtoul(argv[i], NULL, 10);
    hid_t file = access(argv[1], F_OK) == 0
                     ? H5Fopen(argv[1], H5F_ACC_RDWR, H5P_DEFAULT)
                     : H5Fcreate(argv[1], H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    check(file, "opening");
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    check(H5Pset_chunk(list, 1, &size), "the chunk's size");
    check(H5Pset_filter(list, (H5Z_filter_t)atoi(argv[3]), H5Z_FLAG_OPTIONAL, n_values, values),
          "the filter");
    hid_t set = H5Dcreate2(file, argv[2], H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    check(set, "the dataset");
    check(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &start, nbytes, bytes), "writing");
    check(H5Dclose(set), "closing");
    check(H5Fclose(file), "closing");
    return 0;
}
