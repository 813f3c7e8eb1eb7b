# SPDX-License-Identifier: Apache-2.0
#
# libwharf-preload.so: functions of zlib, libdeflate, libzstd and liblz4 for programs that are started with it in
# LD_PRELOAD.  It takes the decoders from the archive, and nothing that the program would have to load.

PRELOAD_SO  := $(BUILD)/libwharf-preload.so
preload_src := $(wildcard clientlib/preload/*.c)

$(PRELOAD_SO): $(call obj,$(preload_src)) $(LIB_A) clientlib/preload/preload.map
	$(say) LD $@
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,libwharf-preload.so -Wl,--no-undefined -Wl,--gc-sections \
	    -Wl,--version-script=clientlib/preload/preload.map -o $@ $(call obj,$(preload_src)) $(LIB_A) -l:libdeflate.a

# A sanitizer's library has to come first in a process: there the library is not for preloading.
all: $(PRELOAD_SO)

ZLIB_SEQUENCES := $(BUILD)/tests/zlib_sequences
$(ZLIB_SEQUENCES): $(call obj,tests/preload/zlib_sequences.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -ldl

LIBDEFLATE_CALLS := $(BUILD)/tests/libdeflate_calls
$(LIBDEFLATE_CALLS): $(call obj,tests/preload/libdeflate_calls.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -ldl -ldeflate

BLOCK_CALLS := $(BUILD)/tests/block_calls
$(BLOCK_CALLS): $(call obj,tests/preload/block_calls.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -ldl -lzstd -llz4

# What any inflater leaves of a program's time: preload_gzip.py measures with it.
COPYING_ZLIB := $(BUILD)/tests/libcopying-zlib.so
$(COPYING_ZLIB): $(call obj,tests/preload/copying_zlib.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -o $@ $^

test-programs: $(COPYING_ZLIB)
test-programs test-integration: $(ZLIB_SEQUENCES) $(LIBDEFLATE_CALLS) $(BLOCK_CALLS)

install_list += 755:$(PRELOAD_SO):$(libdir)/wharf/libwharf-preload.so \
    644:clientlib/preload/libwharf-preload.7:$(mandir)/man7/libwharf-preload.7 \
    644:clientlib/preload/PRELOAD.md:$(docdir)/PRELOAD.md
