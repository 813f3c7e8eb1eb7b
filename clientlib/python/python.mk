# SPDX-License-Identifier: Apache-2.0
#
# The Python package: $(BUILD)/python/wharf, one module for Python 3.11 and all later ones.  Where
# Python's headers are missing, all else is built.

PYTHON          ?= python3
python_include  := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null)
python_there    := $(wildcard $(python_include)/Python.h)
python_obj      := $(call obj,$(wildcard clientlib/python/src/*.c))
python_files    := $(wildcard clientlib/python/wharf/*)
# It writes files too, and takes the encoders of these libraries in the place of libwharf's plain ones.
python_encoders     := zstd lz4
python_encoders_obj := $(call obj,$(foreach c,$(python_encoders),encoders/$(c)/$(c)_encode.c))
PYTHON_DIR      := $(BUILD)/python
PYTHON_MODULE   := $(PYTHON_DIR)/wharf/_wharf.abi3.so

$(python_obj): private ALL_CFLAGS += -isystem $(python_include) -fvisibility=hidden

# With the library in it, so that it works wherever it lies.  The sanitizers' libraries are the
# program's, which preloads them.
$(PYTHON_MODULE): $(python_obj) $(python_encoders_obj) $(LIB_A) $(python_files) clientlib/python/python.map
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)cp -r $(python_files) $(@D)/
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,--version-script=clientlib/python/python.map -o $@ $(python_obj) \
	    $(python_encoders_obj) $(LIB_A) $(LIBRARY_LIBS) $(python_encoders:%=-l%)

# For pip: with all libraries in it, so that it needs none of the machine where it is installed.
WHEEL_MODULE := $(BUILD)/wheel/_wharf.abi3.so
$(WHEEL_MODULE): $(python_obj) $(python_encoders_obj) $(LIB_A) clientlib/python/python.map
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -s -Wl,--gc-sections -Wl,--version-script=clientlib/python/python.map -o $@ \
	    $(python_obj) $(python_encoders_obj) $(LIB_A) $(library_libs:%=-l:lib%.a) $(python_encoders:%=-l:lib%.a) \
	    -l:libprotobuf-c.a -lm

.PHONY: wheel
wheel: $(WHEEL_MODULE) ## a wheel of the Python package for pip, in build/release/wheel
	$(Q)rm -f $(BUILD)/wheel/*.whl
	$(Q)clientlib/python/make_wheel.py $(VERSION) $(WHEEL_MODULE) $(BUILD)/wheel $(python_files)

# Where the Python that is asked looks for packages under a prefix.
python_packages := $(shell $(PYTHON) -c 'import os, sys, sysconfig; print("python%d.%d/%s" % (*sys.version_info[:2], \
    os.path.basename(sysconfig.get_path("platlib"))))' 2>/dev/null)
pythondir ?= $(prefix)/lib/$(if $(filter /usr,$(prefix)),python3/dist-packages,$(python_packages))

.PHONY: python
python: $(PYTHON_MODULE) ## the Python package, in build/release/python
ifneq ($(python_there),)
all: $(PYTHON_MODULE)
test-programs: $(PYTHON_MODULE)
install_list += 755:$(PYTHON_MODULE):$(pythondir)/wharf/$(notdir $(PYTHON_MODULE)) \
    $(foreach file,$(python_files),644:$(file):$(pythondir)/wharf/$(notdir $(file))) \
    644:clientlib/python/README.md:$(docdir)/PYTHON.md \
    644:clientlib/python/EXAMPLES.md:$(docdir)/EXAMPLES.md
install_folders += $(pythondir)/wharf
endif
