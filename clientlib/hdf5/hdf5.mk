# SPDX-License-Identifier: Apache-2.0
#
# Filters for HDF5: a shared library each, in a folder that HDF5_PLUGIN_PATH may name.  Where HDF5's
# headers are missing, all else is built.  They are not linked with HDF5: the process has it.

# HDF5= to do without.
HDF5         ?= $(firstword $(wildcard /usr/include/hdf5/serial/H5PLextern.h /usr/include/H5PLextern.h))
HDF5_DIR     := $(BUILD)/hdf5
hdf5_names   := blosc lz4 bitshuffle zstd blosc2
hdf5_shared  := $(call obj,$(patsubst %,clientlib/hdf5/hdf5_%.c,plugin errors decode))
hdf5_obj     := $(call obj,$(wildcard clientlib/hdf5/*.c))
HDF5_FILTERS := $(hdf5_names:%=$(HDF5_DIR)/libwharf-h5-%.so)

$(hdf5_obj): private ALL_CFLAGS += -isystem $(dir $(HDF5)) -fvisibility=hidden

$(HDF5_DIR)/libwharf-h5-%.so: $(BUILD)/obj/clientlib/hdf5/hdf5_%.c.o $(hdf5_shared) $(LIB_A) clientlib/hdf5/hdf5.map
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,--gc-sections \
	    -Wl,--version-script=clientlib/hdf5/hdf5.map -o $@ $(filter %.o,$^) $(LIB_A) $(LIBRARY_LIBS)

.PHONY: hdf5
hdf5: $(HDF5_FILTERS) ## filters for HDF5, in build/release/hdf5; they take HDF5's headers
ifneq ($(HDF5),)
all: $(HDF5_FILTERS)
hdf5dir ?= $(libdir)/wharf/hdf5
install_list += $(foreach filter,$(HDF5_FILTERS),755:$(filter):$(hdf5dir)/$(notdir $(filter))) \
    644:clientlib/hdf5/HDF5.md:$(docdir)/HDF5.md
install_folders += $(hdf5dir)
endif

# Tests: calls of a filter without HDF5, and a writer of files with chunks as they are.
FILTER_CALLS := $(BUILD)/tests/filter_calls
HDF5_WRITE   := $(BUILD)/tests/hdf5_write
$(call obj,tests/hdf5/filter_calls.c tests/hdf5/hdf5_write.c): private ALL_CFLAGS += -isystem $(dir $(HDF5))

$(FILTER_CALLS): $(call obj,tests/hdf5/filter_calls.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -rdynamic -o $@ $^ -ldl

$(HDF5_WRITE): $(call obj,tests/hdf5/hdf5_write.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(if $(findstring serial,$(HDF5)),-L/usr/lib/$(shell $(CC) -dumpmachine)/hdf5/serial) -lhdf5

ifneq ($(HDF5),)
test-programs test-integration: $(FILTER_CALLS) $(HDF5_WRITE)
endif
