# SPDX-License-Identifier: Apache-2.0
# flatten_header.awk: one header of a header and of all that it includes by "names", each once, for
# programs that have none of this tree.  Names are looked up in ., proto and encoders.  The SIMT
# layer's, which such programs do not compile with, become an error.
#
#     awk -f clientlib/cuda/flatten_header.awk kernels/line/wharf_line.cuh

function find(name,    i, line, path) {
    for (i = 1; i <= 3; i++) {
        path = places[i] name
        if ((getline line < path) >= 0) {
            close(path)
            return path
        }
    }
    print "flatten_header: there is no " name > "/dev/stderr"
    failed = 1
    exit 1
}

function flatten(path,    line, name) {
    seen[path] = 1
    while ((getline line < path) > 0) {
        if (line ~ /^#include "/) {
            name = line
            sub(/^#include "/, "", name)
            sub(/".*/, "", name)
            if (name ~ /^kernels\/simt\//) {
                print "#error \"this header is for nvcc\""
                continue
            }
            name = find(name)
            if (!(name in seen))
                flatten(name)
        } else if (line !~ /SPDX-License-Identifier/) {
            print line
        }
    }
    close(path)
}

BEGIN {
    places[1] = ""; places[2] = "proto/"; places[3] = "encoders/"
    print "/* SPDX-License-Identifier: Apache-2.0 */"
    for (i = 1; i < ARGC; i++)
        flatten(find(ARGV[i]))
    exit failed
}
