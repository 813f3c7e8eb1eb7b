# SPDX-License-Identifier: Apache-2.0
#
# wharf's build.  `make help` lists the targets; `make V=1` shows every command;
# `make VARIANT=debug|asan|tsan` builds in a folder of its own.

VERSION := 0.1.0
ABI     := 0

VARIANT ?= release
PREFIX  ?= /usr/local
prefix  ?= $(PREFIX)
DESTDIR ?=
BUILD   := build/$(VARIANT)
# A folder of further test vectors, laid out as tests/README.md says.
VECTORS ?=
# `make test-unit T=name` runs tests/unit/name_test.c alone.
T       ?= *
FUZZ_SECONDS ?= 60

# ---- tools and flags -----------------------------------------------------------------------

# make presets CC and CXX, so that `?=` would never apply.
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
NVCC     ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)

variant_release := -O2
variant_debug   := -O0
variant_asan    := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
variant_tsan    := -O1 -fsanitize=thread -fno-omit-frame-pointer
# For `make fuzz` only: clang's fuzzing engine.
variant_fuzz    := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
VARIANT_FLAGS   := $(variant_$(VARIANT))
ifeq ($(VARIANT_FLAGS),)
$(error unknown VARIANT=$(VARIANT): release, debug, asan or tsan)
endif

WARN      := -Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wvla -Werror
CWARN     := $(WARN) -Wstrict-prototypes -Wmissing-prototypes
COMMON    := -g -pthread -I. -Iproto -Iencoders -D_GNU_SOURCE -DWHARF_VERSION='"$(VERSION)"' $(VARIANT_FLAGS)
ALL_CFLAGS   := -std=c11 $(COMMON) $(CWARN) $(CFLAGS)
ALL_CXXFLAGS := -std=c++17 $(COMMON) $(WARN) $(CXXFLAGS)
ALL_LDFLAGS  := -pthread $(VARIANT_FLAGS) $(LDFLAGS)
LIBS      := -ldeflate -lz

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
MAKEFLAGS += --no-print-directory
endif

# ---- sources: each folder's are found by name ----------------------------------------------

proto_src    := $(wildcard proto/*.c)
encoders_src := $(wildcard encoders/*.c encoders/*/*.c)
client_src   := $(filter-out clientlib/example.c,$(wildcard clientlib/*.c))
cli_src      := $(wildcard clientlib/cli/*.c)
testlib_src  := $(wildcard tests/lib/*.c)
unit_src     := $(wildcard tests/unit/*_test.c tests/unit/*_test.cc)
# Device code on the CPU; what is only for the GPU has the ending .cu.
simt_src     := $(wildcard kernels/simt/*.cc)

obj = $(patsubst %,$(BUILD)/obj/%.o,$(1))

core_obj    := $(call obj,$(proto_src) $(encoders_src))
client_obj  := $(call obj,$(client_src))
testlib_obj := $(call obj,$(testlib_src))
simt_obj    := $(call obj,$(simt_src))
unit_bin    := $(patsubst tests/unit/%,$(BUILD)/tests/%,$(basename $(unit_src)))

LIB_A  := $(BUILD)/libwharf.a
LIB_SO := $(BUILD)/libwharf.so.$(ABI)
CLI    := $(BUILD)/wharf

.PHONY: all deps test test-unit check format clean help
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
# Keep what implicit rules made on the way: every object serves the next build.
.SECONDARY:

# Until there is a symbol map and a command, only the static library.
all: $(LIB_A) $(if $(wildcard clientlib/libwharf.map),$(LIB_SO)) $(if $(cli_src),$(CLI)) ## libraries and command

# ---- rules ---------------------------------------------------------------------------------

$(BUILD)/obj/%.c.o: %.c
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.cc.o: %.cc
	$(say) CXX $<
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -fPIC -MMD -MP -c -o $@ $<

$(LIB_A): $(core_obj) $(client_obj)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(LIB_SO): $(core_obj) $(client_obj) clientlib/libwharf.map
	$(say) LD $@
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,libwharf.so.$(ABI) -Wl,--version-script=clientlib/libwharf.map \
	    -Wl,--no-undefined -o $@ $(core_obj) $(client_obj) $(LIBS)
	$(Q)ln -sf libwharf.so.$(ABI) $(BUILD)/libwharf.so

$(CLI): $(call obj,$(cli_src)) $(LIB_A)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.c.o $(testlib_obj) $(LIB_A)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcriterion

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.cc.o $(simt_obj) $(testlib_obj) $(LIB_A)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lboost_context -lcriterion

# ---- tests ---------------------------------------------------------------------------------

test-unit: $(filter $(patsubst %,$(BUILD)/tests/%_test,$(subst *,%,$(T))),$(unit_bin)) ## unit tests; T=name for one file
	$(Q)tests/run $(sort $^)

clean: ## remove everything that was built
	rm -rf build

help: ## this list
	@awk -F'## ' '/^[a-z-]+:.*## / {split($$1, t, ":"); printf "  %-12s %s\n", t[1], $$2}' Makefile

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
