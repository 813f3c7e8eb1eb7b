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
# What this make is told does not go on to those that tests run.
unexport T
FUZZ_SECONDS ?= 60
# Changed inputs that `make test` gives to each fuzz target.
MUTATIONS ?= 5000
# A program that boots a systemd for tests/integration/systemd_test.sh, which says how.
LAB ?=

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
# Lines of code are all that a sanitizer's report takes; a fifth less to compile.
DEBUGGING := $(if $(filter asan tsan,$(VARIANT)),-g1,-g)
ifeq ($(VARIANT_FLAGS),)
$(error unknown VARIANT=$(VARIANT): release, debug, asan or tsan)
endif

WARN      := -Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wvla -Werror
CWARN     := $(WARN) -Wstrict-prototypes -Wmissing-prototypes
COMMON    := $(DEBUGGING) -pthread -I. -Iproto -Iencoders -I$(BUILD)/gen -D_GNU_SOURCE -DWHARF_VERSION='"$(VERSION)"' $(VARIANT_FLAGS)
ALL_CFLAGS   := -std=c11 $(COMMON) $(CWARN) $(CFLAGS)
ALL_CXXFLAGS := -std=c++17 $(COMMON) $(WARN) $(CXXFLAGS)
ALL_LDFLAGS  := -pthread $(VARIANT_FLAGS) $(LDFLAGS)
# Encoders whose libraries those who only decode need not load: libwharf and the daemon have the
# codec's NAME_encode_plain.c instead, all other programs NAME_encode.c.
plain_encoders := $(wildcard encoders/*/*_encode_plain.c)
full_encoders  := $(plain_encoders:%_plain.c=%.c)
# Of encoders: each codec's folder names its own.
encoder_libs := $(sort $(shell grep -hv '^\#' encoders/*/*_libraries))
library_libs := $(sort $(shell grep -hv '^\#' $(filter-out $(full_encoders:%_encode.c=%_libraries),$(wildcard encoders/*/*_libraries))))
LIBS         := $(encoder_libs:%=-l%) -lprotobuf-c -lm
# Of file formats that only the command reads.
CLI_LIBS     := -lbrotlidec
LIBRARY_LIBS := $(library_libs:%=-l%) -lprotobuf-c -lm

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
encoders_src := $(filter-out $(full_encoders),$(wildcard encoders/*.c encoders/*/*.c))
client_src   := $(filter-out clientlib/example%,$(wildcard clientlib/*.c))
cli_src      := $(wildcard clientlib/cli/*.c)
testlib_src  := $(wildcard tests/lib/*.c)
unit_src     := $(wildcard tests/unit/*_test.c tests/unit/*_test.cc)
fuzz_src     := $(wildcard tests/fuzz/*_fuzz.c)
# Device code on the CPU, and what engines for both have in common; what is only for the GPU has
# the ending .cu.
simt_src     := $(wildcard kernels/simt/*.cc kernels/*.c)

obj = $(patsubst %,$(BUILD)/obj/%.o,$(1))

# ---- device decoders: a list of the folders that have one, in $(BUILD)/gen -----------------

device_codecs   := $(sort $(patsubst kernels/%/,%,$(dir $(wildcard kernels/*/*_decode.cuh))))
serial_codecs   := $(sort $(patsubst kernels/%/,%,$(dir $(wildcard kernels/*/*_serial.cuh))))
block_codecs    := $(sort $(patsubst kernels/%/,%,$(dir $(wildcard kernels/*/*_block.cuh))))
indexed_codecs  := $(filter $(device_codecs),$(patsubst kernels/%/,%,$(dir $(wildcard kernels/*/*_indexed.cuh))))
part_codecs     := $(filter $(device_codecs),$(patsubst kernels/%/,%,$(dir $(wildcard kernels/*/*_part.cuh))))
device_codecs_h := $(BUILD)/gen/kernels/device_codecs.h
$(device_codecs_h): FORCE
	@mkdir -p $(@D)
	@{ echo '/* Made by the build from the folders of kernels/ that have a decoder. */'; \
	    for c in $(device_codecs); do echo "#include \"kernels/$$c/$${c}_decode.cuh\""; done; \
	    echo "#define WHARF_DEVICE_CODEC_LIST(X) \\"; \
	    for c in $(device_codecs); do echo "    X($$(echo $$c | tr a-z A-Z), $$c) \\"; done; echo; \
	    for c in $(serial_codecs); do echo "#include \"kernels/$$c/$${c}_serial.cuh\""; done; \
	    echo "#define WHARF_SERIAL_CODEC_LIST(X) \\"; \
	    for c in $(serial_codecs); do echo "    X($$(echo $$c | tr a-z A-Z), $$c) \\"; done; echo; \
	    for c in $(block_codecs); do echo "#include \"kernels/$$c/$${c}_block.cuh\""; done; \
	    echo "#define WHARF_BLOCK_CODEC_LIST(X) \\"; \
	    for c in $(block_codecs); do echo "    X($$(echo $$c | tr a-z A-Z), $$c) \\"; done; echo; \
	    for c in $(indexed_codecs); do echo "#include \"kernels/$$c/$${c}_indexed.cuh\""; done; \
	    echo "#define WHARF_INDEXED_CODEC_LIST(X) \\"; \
	    for c in $(indexed_codecs); do echo "    X($$(echo $$c | tr a-z A-Z), $$c) \\"; done; echo; \
	    for c in $(part_codecs); do echo "#include \"kernels/$$c/$${c}_part.cuh\""; done; \
	    echo "#define WHARF_PART_CODEC_LIST(X) \\"; \
	    for c in $(part_codecs); do echo "    X($$(echo $$c | tr a-z A-Z), $$c) \\"; done; echo; } > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# ---- control messages: C from proto/*.proto, in $(BUILD)/gen -------------------------------

PROTOC_C      ?= protoc-c
proto_gen     := $(patsubst %.proto,$(BUILD)/gen/%.pb-c,$(wildcard proto/*.proto))
proto_gen_h   := $(addsuffix .h,$(proto_gen))
proto_gen_obj := $(patsubst $(BUILD)/gen/%,$(BUILD)/obj/%.c.o,$(proto_gen))

$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: %.proto | $(BUILD)/deps
	$(say) PROTO $<
	@mkdir -p $(@D)
	$(Q)$(PROTOC_C) --c_out=$(BUILD)/gen $<

# The generated code asserts on its caller's types, and a library must not end the program.
$(BUILD)/obj/%.pb-c.c.o: $(BUILD)/gen/%.pb-c.c $(BUILD)/flags
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DNDEBUG -fPIC -MMD -MP -c -o $@ $<

core_obj    := $(call obj,$(proto_src) $(encoders_src)) $(proto_gen_obj)
client_obj  := $(call obj,$(client_src))
testlib_obj := $(call obj,$(testlib_src))
simt_obj    := $(call obj,$(simt_src))
unit_bin    := $(patsubst tests/unit/%,$(BUILD)/tests/%,$(basename $(unit_src)))
fuzz_bin    := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(fuzz_src))

# Criterion's own main(), except where direct_main.c says why not.
unit_main   := $(if $(filter tsan,$(VARIANT)),$(call obj,tests/unit/direct_main.c))
# Likewise for fuzz targets: our own main() that replays files, or the engine's.
fuzz_main   := $(if $(filter fuzz,$(VARIANT)),,$(call obj,tests/fuzz/replay_main.c))
fuzz_engine := $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer)

LIB_A  := $(BUILD)/libwharf.a
# For programs that encode: these objects come first, so that the archive's plain ones stay in it.
ENCODING_LIB := $(call obj,$(full_encoders)) $(LIB_A)
LIB_SO := $(BUILD)/libwharf.so.$(ABI)
CLI    := $(BUILD)/wharf
# The device code on the CPU, with what it needs beside $(LIBS).
SIMT_A := $(BUILD)/libsimt.a
# Under the thread sanitizer nothing uses it.
simt_a := $(if $(filter tsan,$(VARIANT)),,$(SIMT_A))
SIMT_LIBS := -lboost_context -lstdc++
TESTLIB := $(BUILD)/libtests.a

# The daemon; all but its main file is a library too, for its tests.
daemon_src  := $(wildcard $(addprefix daemon/,*.c base/*.c core/*.c schedule/*.c placement/*.c dispatch/*.c cpu/*.c gpu/*.c control/*.c)) kernels/work_parts.c
# Subordinate uids of directory services, where libsubid's header is there (SUBID= to do without).
SUBID       ?= $(wildcard /usr/include/shadow/subid.h)
daemon_src  := $(filter-out daemon/control/owner_subid$(if $(SUBID),_none).c,$(daemon_src))
daemon_obj  := $(call obj,$(filter-out daemon/wharfd.c,$(daemon_src)))
DAEMON_A    := $(BUILD)/libwharfd.a
DAEMON      := $(BUILD)/wharfd
DAEMON_LIBS := -luring -lsystemd

# The process that owns the GPU; and the same one with the device's code on the CPU, for machines
# without a GPU and for tests.
worker_obj  := $(call obj,$(filter-out daemon/worker/engine_%.c,$(wildcard daemon/worker/*.c)))
SIMT_WORKER := $(BUILD)/wharfd-simt
GPU_WORKER  := $(BUILD)/wharfd-gpu
gpu_obj     := $(call obj,$(wildcard kernels/*.cu))
kernel_obj  := $(call obj,$(wildcard kernels/*_kernel.cu))

# A make of its own, for what may have to be installed first and for other variants: on all cores,
# unless this make was told how many to take.
parallel = $(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: all deps demo clean help FORCE
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
# Keep what implicit rules made on the way: every object serves the next build.
.SECONDARY:

all: $(LIB_A) $(LIB_SO) $(CLI) $(DAEMON) $(SIMT_WORKER) ## libraries, command and daemon
	@echo 'wharf $(VERSION), $(VARIANT): $(gpu_note)'
no_gpu   := CPU-only build: there is no nvcc on PATH or in /usr/local/cuda
gpu_note := $(if $(NVCC),`make gpu-worker` builds what GPUs take with $(NVCC),$(no_gpu))

# ---- rules ---------------------------------------------------------------------------------

# Before anything is built: a missing package is called by its name, not by what fails without it.
$(BUILD)/deps: .ci/find-deps .ci/packages
	@mkdir -p $(@D)
	@CC='$(CC)' CXX='$(CXX)' PROTOC_C='$(PROTOC_C)' .ci/find-deps build
	@touch $@

# Objects depend on the flags that they were made with: after another CC or CFLAGS all are stale.
$(BUILD)/flags: FORCE | $(BUILD)/deps
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(CXX) $(ALL_CXXFLAGS)' | cmp -s - $@ || \
	    echo '$(CC) $(ALL_CFLAGS) $(CXX) $(ALL_CXXFLAGS)' > $@

# Any source may include generated headers: they are there first.
$(BUILD)/obj/%.c.o: %.c $(BUILD)/flags | $(proto_gen_h)
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -MMD -MP -c -o $@ $<

# They have tables on the stack: on one that is too small they are to meet the page behind that, not to
# step over it into other memory.
$(patsubst %,$(BUILD)/obj/encoders/%.c.o,rans/rans_decode zstd/zstd_decode zstd/zstd_reference blosc/blosc_decode blosc/blosc_reference): \
    private ALL_CFLAGS += -fstack-clash-protection

$(BUILD)/obj/%.cc.o: %.cc $(BUILD)/flags | $(device_codecs_h)
	$(say) CXX $<
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -fPIC -MMD -MP -c -o $@ $<

# Machine code for the A100 and the H100, and PTX for what comes later.  Compressed, it is a third.
CUDA_ARCHS ?= 80 90
NVCC_FLAGS := -std=c++17 -O3 -I. -Iproto -Iencoders -I$(BUILD)/gen -Xcompiler -Wall,-Wextra,-fPIC \
    -compress-mode=size \
    $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
    -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CUDA_HOME  := $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
CUDA_LIBS  := -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt

$(BUILD)/obj/%.cu.o: %.cu $(BUILD)/flags | $(device_codecs_h)
	$(say) NVCC $<
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(LIB_A): $(core_obj) $(client_obj)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(SIMT_A): $(simt_obj)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(TESTLIB): $(testlib_obj)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(LIB_SO): $(core_obj) $(client_obj) clientlib/libwharf.map
	$(say) LD $@
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,libwharf.so.$(ABI) -Wl,--version-script=clientlib/libwharf.map \
	    -Wl,--no-undefined -o $@ $(core_obj) $(client_obj) $(LIBRARY_LIBS)
	$(Q)ln -sf libwharf.so.$(ABI) $(BUILD)/libwharf.so

$(CLI): $(call obj,$(cli_src)) $(ENCODING_LIB)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(CLI_LIBS)

# ---- wharfd ---------------------------------------------------------------------------------

$(DAEMON_A): $(daemon_obj)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(DAEMON): $(call obj,daemon/wharfd.c) $(DAEMON_A) $(LIB_A)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBRARY_LIBS) $(DAEMON_LIBS)

ifeq ($(VARIANT),tsan)
# Coroutines are nothing for the thread sanitizer: the front's threads are tested with the release's.
$(SIMT_WORKER): FORCE
	@mkdir -p $(@D)
	+$(Q)$(MAKE) VARIANT=release build/release/wharfd-simt
	$(Q)ln -f build/release/wharfd-simt $@
else
$(SIMT_WORKER): $(worker_obj) $(call obj,daemon/worker/engine_simt.c) $(DAEMON_A) $(SIMT_A) $(LIB_A)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBRARY_LIBS) $(SIMT_LIBS)
endif

$(GPU_WORKER): $(worker_obj) $(call obj,daemon/worker/engine_cuda.c) $(gpu_obj) $(DAEMON_A) $(SIMT_A) $(LIB_A)
	$(say) LD $@
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(LIBRARY_LIBS) $(SIMT_LIBS) $(CUDA_LIBS)

# A worker as quick as a processor, for profiling the daemon where there is no GPU.
$(BUILD)/tests/wharfd-host: $(worker_obj) $(call obj,tests/gpu/engine_host.c) $(DAEMON_A) $(SIMT_A) $(LIB_A)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS)

# Packages and the demo want it where there is nvcc, and do without.
.PHONY: gpu-worker
gpu-worker: $(if $(NVCC),$(GPU_WORKER)) ## the worker for GPUs, with nvcc, which takes minutes; before `make install`
	$(if $(NVCC),,@echo '$(no_gpu)')

# Its tests, tests/unit/wharfd_*_test.c, use its parts or run it.
$(BUILD)/tests/wharfd_%: $(BUILD)/obj/tests/unit/wharfd_%.c.o $(unit_main) $(TESTLIB) $(DAEMON_A) $(ENCODING_LIB) | $(DAEMON) $(SIMT_WORKER)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(DAEMON_LIBS) -lcriterion

# ---- unit tests ----------------------------------------------------------------------------

# It runs the command.
$(BUILD)/tests/hostile_daemon_command_test: | $(CLI)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.c.o $(unit_main) $(TESTLIB) $(simt_a) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS) -lcriterion

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.cc.o $(unit_main) $(TESTLIB) $(simt_a) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS) -lcriterion

# The encoders that libwharf and the daemon have, by the same tests.
PLAIN_ENCODE_TEST := $(BUILD)/tests/plain_encode_test
unit_bin += $(PLAIN_ENCODE_TEST)
$(PLAIN_ENCODE_TEST): $(call obj,tests/unit/encode_test.c) $(unit_main) $(TESTLIB) $(LIB_A)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBRARY_LIBS) -lcriterion

# A whole daemon with its GPU, for machines with one; with the device's code on the CPU elsewhere.
DAEMON_TEST_LIBS := -static-libgcc -static-libstdc++ $(encoder_libs:%=-l:lib%.a) -l:libprotobuf-c.a -l:libboost_context.a -lm
GPU_DAEMON := $(BUILD)/tests/wharf_gpu_daemon
$(GPU_DAEMON): $(call obj,$(wildcard tests/gpu/gpu_daemon*.c) tests/gpu/gpu_pack.c) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB) | $(DAEMON) $(SIMT_WORKER) $(BUILD)/wharfd-poison
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(DAEMON_TEST_LIBS)

# The daemon in whose GPU jobs can ask for faults, for tests of those.
POISON := $(BUILD)/wharfd-poison
$(POISON): $(call obj,daemon/wharfd.c tests/gpu/gpu_poison.c) $(DAEMON_A) $(LIB_A)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBRARY_LIBS) $(DAEMON_LIBS)

# ---- tests ---------------------------------------------------------------------------------

# A client for tests of the service; it uses whatever libwharf.so.0 the dynamic linker finds.
STEADY_CLIENT := $(BUILD)/tests/steady_client
$(STEADY_CLIENT): $(call obj,tests/integration/steady_client.c) $(LIB_SO)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lz

# Every vector through every engine.
VECTORS_BIN := $(BUILD)/tests/vectors
$(VECTORS_BIN): $(call obj,tests/unit/vectors_main.c tests/unit/vector_engines.c) $(TESTLIB) $(simt_a) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS)

# Device code with every access to memory watched: kernels/simt/race/race_watch.cc says how.  More
# optimisation leaves out loads that a GPU's compiler may keep.  Of variables that seem not to be set the
# other builds warn: with these calls in between gcc takes some that are set for such.
WATCH := -O1 -fsanitize=thread -Wno-maybe-uninitialized
$(BUILD)/obj/watched/%.cc.o: %.cc $(BUILD)/flags | $(device_codecs_h)
	$(say) CXX "$< (watched)"
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(WATCH) -fPIC -MMD -MP -c -o $@ $<

race_obj := $(BUILD)/obj/watched/kernels/simt/simt_batch.cc.o $(BUILD)/obj/watched/kernels/simt/simt_epoch.cc.o \
    $(call obj,kernels/simt/race/race_watch.cc)
$(BUILD)/race/tests/race_watch_test: $(BUILD)/obj/watched/tests/race/race_watch_test.cc.o $(call obj,kernels/simt/race/race_watch.cc) $(SIMT_A)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(SIMT_LIBS) -lcriterion

$(BUILD)/race/vectors: $(call obj,tests/unit/vectors_main.c tests/unit/vector_engines.c) $(race_obj) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS)

# Unit tests of device code, those in C++ with device code of their own, and the fuzz target.
$(BUILD)/race/tests/%: $(BUILD)/obj/tests/unit/%.c.o $(race_obj) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS) -lcriterion

$(BUILD)/race/tests/%: $(BUILD)/obj/watched/tests/unit/%.cc.o $(call obj,kernels/simt/race/race_watch.cc) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS) -lcriterion

$(BUILD)/race/%: $(BUILD)/obj/tests/fuzz/%.c.o $(fuzz_main) $(race_obj) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(SIMT_LIBS)

# Fuzz targets run over their corpora without a fuzzing engine, but with clang's in `make fuzz`.
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.c.o $(fuzz_main) $(TESTLIB) $(simt_a) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_LDFLAGS) $(fuzz_engine) -o $@ $^ $(LIBS) $(SIMT_LIBS)

$(BUILD)/fuzz/wharfd_%: $(BUILD)/obj/tests/fuzz/wharfd_%.c.o $(fuzz_main) $(TESTLIB) $(DAEMON_A) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_LDFLAGS) $(fuzz_engine) -o $@ $^ $(LIBS) $(DAEMON_LIBS)

# Storms of requests, and what other clients wait beside them.
STORMS := $(BUILD)/tests/wharf_storms
$(STORMS): $(call obj,$(wildcard tests/hostile/storm*.c) tests/bench/bench_row.c) $(TESTLIB) $(ENCODING_LIB) | $(DAEMON)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# One user who is hundreds of uids, and what a neighbour has beside them.
OWNERS := $(BUILD)/tests/wharf_owners
$(OWNERS): $(call obj,$(wildcard tests/hostile/owners*.c) tests/bench/bench_row.c) $(TESTLIB) $(ENCODING_LIB) | $(DAEMON)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

.PHONY: test-hostile
test-hostile: all $(STORMS) $(OWNERS) ## what a tenant can do to others, measured: on a machine that does nothing else, as root
	$(Q)$(STORMS) --check
	$(Q)$(OWNERS) --check

.PHONY: test-programs test test-unit test-integration check fuzz format

# What this variant's tests need; `make test` builds it for three variants.  Tests of device code
# (.cc, and those with simt in their names) run a warp as coroutines of one thread: nothing for the
# thread sanitizer.
without_simt = $(foreach name,$(1),$(if $(findstring simt,$(name)),,$(name)))
# What codecs and containers share between threads, the tests of the client, the command and the
# daemon reach; their own tests have one thread, and under that sanitizer take minutes.
one_thread := bgzf_test container_damage_test container_place_test container_seek_test decode_poll_test encode_test \
    extents_test inflate_% line_test rans_test
tsan_names := $(filter-out $(one_thread),$(call without_simt,$(patsubst tests/unit/%.c,%,$(filter %.c,$(unit_src)))))
test-programs: $(CLI) $(if $(filter tsan,$(VARIANT)),$(tsan_names:%=$(BUILD)/tests/%),$(unit_bin) $(fuzz_bin) $(VECTORS_BIN) $(GPU_DAEMON))

unit_names := $(notdir $(unit_bin))
fuzz_names := $(notdir $(fuzz_bin))
sanitized  := tests/integration/sanitized_command_test.sh
scripts    := $(filter-out $(sanitized),$(wildcard tests/integration/*_test.sh tests/integration/*_test.py))
# All other scripts once more, and so the longest one: in three parts beside each other.
sanitized_runs := $(foreach part,address_sanitizer_on_[a-d] address_sanitizer_on_[e-z] thread_sanitizer,"ONLY=$(part) $(sanitized)")
# One word a program, with its arguments, as tests/run-tests takes them.
fuzz_inputs = tests/fuzz/corpus/$(1) $(shell grep -sv '^\#' tests/fuzz/$(1).inputs)
replays    := $(foreach f,$(fuzz_names),"build/asan/fuzz/$(f) --mutations $(MUTATIONS) $(call fuzz_inputs,$(f))")

# Looking for uses of a stack after its function's return takes a third of the time of coroutines' many
# small calls; decoders that run on the CPU are tested with that by their own tests.
fake_stacks_off := ASAN_OPTIONS=detect_stack_use_after_return=0
asan_runs := $(foreach name,$(unit_names),"$(if $(findstring simt,$(name)),$(fake_stacks_off) )build/asan/tests/$(name)")

# Committed vectors, and with VECTORS those of a further folder, by way of a table.
vector_runs := "$(fake_stacks_off) build/asan/tests/vectors tests/vectors" "build/release/tests/vectors tests/vectors"
# A daemon with a worker: every vector, and storms with all that can be killed being killed.
daemon_runs := $(foreach v,asan release,"build/$(v)/tests/wharf_gpu_daemon --engine simt vectors tests/vectors" \
    "build/$(v)/tests/wharf_gpu_daemon --engine simt check 1500" \
    "build/$(v)/tests/wharf_gpu_daemon --engine simt soak 1") \
    "build/release/tests/wharf_gpu_daemon --engine simt faults" \
    "WHARF_TEST_GPU=simt build/release/tests/wharfd_hostile_test"
ifneq ($(VECTORS),)
# Too many for the sanitizers, which see the committed ones; untouchable pages guard these.
vector_runs += "build/release/tests/vectors build/vectors.table $(VECTORS)"
vector_runs += "build/release/tests/vectors build/vectors-orc.table build/vectors-orc"
vector_runs += "tests/integration/cat_vectors.py $(VECTORS)"
vector_runs += "tests/integration/rans_vectors.py $(VECTORS)"
endif

# Of clang only its warnings are wanted, which no optimisation changes.
test: deps ## install what is missing, then run all tests that need no GPU; VECTORS=DIR for more
	+$(Q)$(parallel) all test-programs $(STEADY_CLIENT)
	+$(Q)$(parallel) VARIANT=asan test-programs
	+$(Q)$(parallel) VARIANT=tsan test-programs
	+$(Q)$(parallel) BUILD=build/clang CC=clang CXX=clang++ CFLAGS='-O0 -g0' CXXFLAGS='-O0 -g0' all
	$(if $(VECTORS),$(Q)tests/lib/vector_table.py $(VECTORS) > build/vectors.table)
	$(if $(VECTORS),$(Q)tests/lib/orc_vectors.py $(VECTORS) build/vectors-orc > build/vectors-orc.table)
	$(if $(LAB),$(Q).ci/install-deps lab)
	$(if $(LAB),+$(Q)$(MAKE) deb NVCC=)
	$(Q)LAB="$(LAB)" tests/run-tests $(sanitized_runs) $(vector_runs) $(daemon_runs) $(checks) $(scripts) \
	    "tests/integration/python_client_test.py --build build/asan" $(tsan_names:%=build/tsan/tests/%) \
	    $(asan_runs) $(replays) $(unit_names:%=build/release/tests/%)

test-unit: $(filter $(patsubst %,$(BUILD)/tests/%_test,$(subst *,%,$(T))),$(unit_bin)) ## unit tests; T=name for one file
	$(Q)tests/run-tests $(sort $^)

test-integration: all $(VECTORS_BIN) $(STEADY_CLIENT) ## tests of the command and the installed library; T=name for one file
	$(Q)BUILD=$(BUILD) tests/run-tests $(wildcard tests/integration/$(T)_test.sh tests/integration/$(T)_test.py)

.PHONY: test-systemd
test-systemd: ## the Debian packages under a real systemd, which LAB=PROGRAM boots
	$(if $(LAB),,$(error LAB=PROGRAM has to boot a systemd, as tests/integration/systemd_test.sh says))
	$(Q).ci/install-deps build lab
	+$(Q)$(MAKE) deb NVCC=
	+$(Q)$(parallel) VARIANT=release build/release/wharfd-simt build/release/tests/steady_client
	$(Q)LAB="$(LAB)" tests/run-tests tests/integration/systemd_test.sh

# The watch's own test; every vector; tests of device code that are not of single functions; a fuzz target.
# (The largest chunk's watch would take 12 GiB.)
race_tests := $(filter-out largest_chunk_simt_test,$(filter %_simt_test,$(patsubst tests/unit/%.c,%,$(unit_src)))) \
    rans_chains_simt_test rans_pieces_simt_test line_encode_simt_test
race_runs  := "$(BUILD)/race/tests/race_watch_test" "$(BUILD)/race/vectors --device tests/vectors" \
    $(race_tests:%="$(BUILD)/race/tests/%") \
    "$(BUILD)/race/device_fuzz --mutations $(MUTATIONS) $(call fuzz_inputs,device_fuzz)"
.PHONY: test-races race-programs
race-programs: $(addprefix $(BUILD)/race/,vectors device_fuzz tests/race_watch_test $(race_tests:%=tests/%))
test-races: deps ## device decoders with every access to memory watched for races of lanes
	+$(Q)$(parallel) race-programs
	$(Q)tests/run-tests $(race_runs)

checks := $(sort $(wildcard tests/check/*_check.*))
check: all ## layering, names, format, exported symbols, scripts, manual pages
	$(Q)BUILD=$(BUILD) tests/run-tests $(checks)

fuzz: ## fuzz every target for FUZZ_SECONDS (60), after a million fixed mutations each
	$(Q).ci/install-deps build test
	+$(Q)$(parallel) $(fuzz_names:%=build/release/fuzz/%)
	+$(Q)$(parallel) VARIANT=fuzz CC=clang CXX=clang++ $(fuzz_names:%=build/fuzz/fuzz/%)
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run-fuzz $(fuzz_names)

format: ## clang-format all sources, and write enumerations that are made of lists
	$(Q)tests/check/enums_check.py --write
	$(Q)clang-format -i $(shell find $(wildcard proto encoders kernels daemon clientlib tests) \
	    -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh')

# ---- GPU -----------------------------------------------------------------------------------

# Device code on a GPU.  Linked so that the programs run on machines without our libraries.
GPU_LIBS := -static-libgcc -static-libstdc++ $(encoder_libs:%=-l:lib%.a) -l:libboost_context.a $(CUDA_LIBS)

gpu_device_obj := $(call obj,$(addprefix tests/gpu/,gpu_device_simt.c gpu_device_cuda.cu)) $(gpu_obj)
$(BUILD)/wharf_gpu_test: $(call obj,$(addprefix tests/gpu/,gpu_test_main.c gpu_cases.c gpu_check.c))
$(BUILD)/wharf_gpu_bench: $(call obj,$(addprefix tests/gpu/,gpu_bench_main.c gpu_pack.c gpu_symbols.c))
$(BUILD)/wharf_gpu_epoch: $(call obj,$(addprefix tests/gpu/,gpu_epoch_main.c gpu_epoch_check.c \
    gpu_epoch_jobs.c gpu_epoch_measure.c gpu_epoch_import.c gpu_epoch_parts.c gpu_pack.c gpu_export.cu gpu_client.cu gpu_tenant.cu))
$(BUILD)/wharf_gpu_rans: $(call obj,$(addprefix tests/gpu/,gpu_rans_main.cu gpu_rans_stream.c gpu_symbols.c gpu_pack.c))
# Somebody else's program: it has nothing of ours but the checks of CUDA's calls.
GPU_TENANT := $(BUILD)/wharf_gpu_tenant
$(GPU_TENANT): $(call obj,tests/gpu/gpu_tenant_main.c tests/gpu/gpu_tenant.cu kernels/cuda_error.cu)
	$(say) LD $@
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ -static-libgcc -static-libstdc++ $(CUDA_LIBS)
# A client that uses CUDA, and the daemon's GPU.
GPU_MEMORY := $(BUILD)/tests/wharf_gpu_memory
$(GPU_MEMORY): $(call obj,$(addprefix tests/gpu/,gpu_memory_main.c gpu_memory_measure.c gpu_client.cu \
    gpu_pack.c) kernels/cuda_error.cu) $(TESTLIB) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DAEMON_TEST_LIBS) $(CUDA_LIBS)
# As its comment says, but for the libraries.
GPU_EXAMPLE := $(BUILD)/tests/example_gpu
$(GPU_EXAMPLE): clientlib/example_gpu.c $(LIB_A)
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Iclientlib -Iproto -Iencoders \
	    -isystem $(CUDA_HOME)/include -o $@ $^ $(DAEMON_TEST_LIBS) -L$(CUDA_HOME)/lib64/stubs -lcuda
$(BUILD)/wharf_gpu_%: $(gpu_device_obj) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB)
	$(say) LD $@
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(GPU_LIBS)

.PHONY: gpu-programs test-gpu test-gpus bench-gpu study-gpu
gpu-programs: ## the GPU's worker, its tests and benchmarks, with nvcc
	$(if $(NVCC),,$(error there is no nvcc on PATH or in /usr/local/cuda: install the CUDA toolkit, or set NVCC))
	$(Q)$(MAKE) $(BUILD)/wharf_gpu_test $(BUILD)/wharf_gpu_bench $(BUILD)/wharf_gpu_rans $(BUILD)/wharf_gpu_epoch $(GPU_TENANT) $(GPU_WORKER) $(DAEMON) $(GPU_DAEMON) $(GPU_MEMORY) $(GPU_EXAMPLE)

# What of kernels is counted there: guards, instructions, registers, stack.
.PHONY: check-device-code
check-device-code: ## hold the GPU's machine code to tests/check/device_code.limits; takes nvcc and cuobjdump
	$(if $(NVCC),,$(error there is no nvcc on PATH or in /usr/local/cuda: install the CUDA toolkit, or set NVCC))
	+$(Q)$(MAKE) $(kernel_obj)
	$(Q)tests/run-tests "tests/check/device_code.py $(kernel_obj)"

# Sixteen clients of all kinds at once, for so long; SOAK_ENGINE=simt where there is no GPU.
SOAK_SECONDS ?= 600
SOAK_ENGINE  ?= cuda
.PHONY: soak
soak: $(DAEMON) $(GPU_DAEMON) $(if $(filter simt,$(SOAK_ENGINE)),$(SIMT_WORKER),$(GPU_WORKER)) ## clients of all kinds at once for SOAK_SECONDS (600); SOAK_ENGINE=simt without a GPU
	$(Q)tests/run-tests -j1 "$(GPU_DAEMON) --engine $(SOAK_ENGINE) soak $(SOAK_SECONDS)"

# Jobs with damaged streams in `make test-gpu`, and of these some under the memory checker.
DAMAGED ?= 1000000
DAMAGED_CHECKED ?= 2000
# Sessions that come and go, and leave nothing.
SESSIONS ?= 5000
# Forged streams, each with some variants and damages; and under the memory checker.
FORGED ?= 20000
FORGED_CHECKED ?= 200
gpu_test  := $(BUILD)/wharf_gpu_test
sanitizer := $(firstword $(wildcard $(CUDA_HOME)/bin/compute-sanitizer) compute-sanitizer)
sanitized := $(gpu_test) --own-memory
gpu_runs  := "$(gpu_test) vectors tests/vectors" "$(gpu_test) --any-codec vectors tests/vectors" \
    "$(gpu_test) --serial vectors tests/vectors" "$(gpu_test) --serial-registers vectors tests/vectors" \
    "$(gpu_test) --serial-prefetch vectors tests/vectors" \
    "$(gpu_test) generated 20" "$(gpu_test) --any-codec generated 3" "$(gpu_test) --serial generated 3" \
    "$(gpu_test) forged $(FORGED)" "$(gpu_test) --serial forged 2000" \
    "$(gpu_test) --serial-registers forged 2000" "$(gpu_test) damaged $(DAMAGED)" \
    "$(gpu_test) --block vectors tests/vectors" "$(gpu_test) --block generated 20" \
    "$(gpu_test) --block forged 5000" "$(gpu_test) --block damaged 100000" \
    "$(gpu_test) --indexed vectors tests/vectors" "$(gpu_test) --indexed generated 20" \
    "$(gpu_test) --indexed damaged 100000" \
    "$(sanitizer) --tool memcheck --error-exitcode 9 $(sanitized) --indexed damaged $(DAMAGED_CHECKED)" \
    $(foreach tool,memcheck racecheck,"$(sanitizer) --tool $(tool) --error-exitcode 9 $(sanitized) --block vectors tests/vectors") \
    "$(sanitizer) --tool memcheck --error-exitcode 9 $(sanitized) --block forged $(FORGED_CHECKED)" \
    "$(sanitizer) --tool memcheck --error-exitcode 9 $(sanitized) forged $(FORGED_CHECKED)" \
    "$(sanitizer) --tool memcheck --error-exitcode 9 $(sanitized) damaged $(DAMAGED_CHECKED)" \
    $(foreach tool,memcheck racecheck initcheck,"$(sanitizer) --tool $(tool) --error-exitcode 9 $(sanitized) vectors tests/vectors")
gpu_runs  += "$(GPU_DAEMON) vectors tests/vectors" "$(GPU_DAEMON) check 20000" "$(GPU_DAEMON) soak $(SOAK_SECONDS)" \
    "WHARF_TEST_GPU=cuda $(BUILD)/tests/wharfd_hostile_test" \
    "$(GPU_DAEMON) faults" "$(GPU_DAEMON) --setting kernel=batch faults" "$(GPU_DAEMON) sessions $(SESSIONS)"
# And as the service runs it.
gpu_runs  += "tests/lib/under_unit.py run $(BUILD)/restrictions $(GPU_DAEMON) vectors tests/vectors" \
    "tests/lib/under_unit.py run $(BUILD)/restrictions $(GPU_DAEMON) check 2000" \
    "$(GPU_DAEMON) --setting kernel=batch vectors tests/vectors" "$(GPU_DAEMON) --setting kernel=batch check 5000"
$(BUILD)/restrictions: $(BUILD)/wharfd.service tests/lib/under_unit.py
	$(Q)tests/lib/under_unit.py compile $< > $@
gpu_runs  += "$(GPU_MEMORY) check 1000" \
    "tests/lib/under_unit.py run $(BUILD)/restrictions $(GPU_MEMORY) check 300"
gpu_epoch := $(BUILD)/wharf_gpu_epoch
gpu_runs  += "$(gpu_epoch) check 20000" "$(gpu_epoch) --idle 50 --stay 300 check 20000" \
    "$(gpu_epoch) --per-batch check 5000" "$(gpu_epoch) noops 100000" \
    "$(gpu_epoch) cancel deflate $(BUILD)/column 131072 300" \
    "$(gpu_epoch) import deflate $(BUILD)/column 16384" \
    "$(gpu_epoch) parts rans $(BUILD)/column 65536 20" \
    "$(sanitizer) --tool memcheck --error-exitcode 9 $(gpu_epoch) --per-batch --warps 64 check 300"
ifneq ($(VECTORS),)
gpu_runs += "$(gpu_test) vectors build/vectors.table $(VECTORS)"
gpu_runs += "$(gpu_test) vectors build/vectors-orc.table build/vectors-orc"
endif

$(BUILD)/column: $(BUILD)/bench/columns
	$(Q)$< tpc 1048576 1 > $@

test-gpu: gpu-programs $(BUILD)/restrictions $(BUILD)/column $(BUILD)/tests/wharfd_hostile_test ## device decoders on a GPU, which must be there; VECTORS=DIR for more
	$(if $(VECTORS),$(Q)tests/lib/vector_table.py $(VECTORS) > build/vectors.table)
	$(if $(VECTORS),$(Q)tests/lib/orc_vectors.py $(VECTORS) build/vectors-orc > build/vectors-orc.table)
	$(Q)tests/run-tests -j1 $(gpu_runs)

# What takes two GPUs.
test-gpus: gpu-programs ## the daemon with two GPUs, which must be there
	$(Q)tests/run-tests -j1 "$(GPU_DAEMON) gpus 20000" "$(GPU_MEMORY) --gpu 1 check 500"

# NVCOMP: nvcomp_bench, to time beside ours.  DATA as for `make bench`.
gpu_peers = $(if $(DATA),--data $(DATA)) $(if $(NVCOMP),--nvcomp $(NVCOMP))
bench-gpu: gpu-programs $(BUILD)/bench/columns $(BUILD)/bench/share_client ## time the GPU and who shares it; DATA=DIR, NVCOMP=PROGRAM
	$(Q)tests/bench/gpu-run $(gpu_peers)
	$(Q)tests/bench/gpu-run --serial $(if $(DATA),--data $(DATA))
	$(Q)tests/bench/gpu-run --serial-registers $(if $(DATA),--data $(DATA))
	$(Q)tests/bench/gpu-run --mode sweep $(gpu_peers)
	$(Q)tests/bench/gpu-run --codec rans --mode symbols
	$(Q)tests/bench/share-run --programs $(BUILD) $(gpu_peers)

study-gpu: gpu-programs $(BUILD)/bench/columns ## what limits decoders on the GPU: all of tests/bench/gpu-study
	$(Q)tests/bench/gpu-study

# ---- benchmarks ----------------------------------------------------------------------------

bench_bin := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/*_bench.c)) \
    $(BUILD)/bench/columns $(BUILD)/bench/rans_sizes $(BUILD)/bench/orc_decode
$(BUILD)/bench/columns: $(call obj,tests/bench/columns.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

# What the daemon costs takes more than one file, and the daemon.
$(BUILD)/bench/wharfd_bench: $(call obj,$(wildcard tests/bench/daemon_*.c)) | $(DAEMON) $(BUILD)/wharf

# Linked for machines without our libraries.
$(BUILD)/bench/share_client: $(call obj,tests/bench/share_client.c) $(TESTLIB) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(DAEMON_TEST_LIBS)

$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.c.o $(call obj,$(wildcard tests/bench/bench_*.c)) $(TESTLIB) $(ENCODING_LIB)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lm

.PHONY: bench bench-programs
bench-programs: $(bench_bin)

# A folder with dickens, nci and taxi.csv, as tests/README.md says; without it they are left out.
DATA ?=
bench: deps ## measure against peers on this CPU; DATA=DIR for more data
	+$(Q)$(parallel) all bench-programs
	$(Q)BUILD=$(BUILD) tests/bench/run-bench --build $(BUILD) $(if $(DATA),--data $(DATA))

.PHONY: bench-daemon
daemon_rows := tests/bench/results/$(shell date -u +%F)-daemon.jsonl
bench-daemon: deps ## measure what the daemon costs, alone; DATA=DIR for more data
	+$(Q)$(parallel) all bench-programs
	$(Q)tests/bench/run-bench --build $(BUILD) --only wharfd_bench --out $(daemon_rows) $(if $(DATA),--data $(DATA))
	$(Q)tests/bench/report $(daemon_rows)

.PHONY: results
results: ## make the tables of results, and the plots, from the rows in tests/bench/results
	$(Q)tests/bench/write-results

# ---- install -------------------------------------------------------------------------------

bindir     ?= $(prefix)/bin
# wharfd looks in ../libexec, seen from where it is itself.
libexecdir ?= $(prefix)/libexec
libdir     ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir     ?= $(prefix)/share/man
docdir     ?= $(prefix)/share/doc/wharf
completiondir ?= $(prefix)/share/bash-completion/completions
zshcompletiondir  ?= $(prefix)/share/zsh/site-functions
fishcompletiondir ?= $(prefix)/share/fish/vendor_completions.d
# systemd and the daemon look into /etc, for what is under /usr or /usr/local.
sysconfdir ?= $(if $(filter /usr /usr/local,$(prefix)),,$(prefix))/etc
unitdir    ?= $(prefix)/lib/systemd/system
sysusersdir ?= $(prefix)/lib/sysusers.d
tmpfilesdir ?= $(prefix)/lib/tmpfiles.d

# A page about several functions is found by each one's name, as its NAME section has them.
page_links = $(shell awk '/^\.S[hH] / { in_name = $$2 == "NAME"; n = 0 } \
    in_name && $$1 == ".Nm" { if (n++) print "link:" page ":$(mandir)/man3/" $$2 ".3"; else page = $$2 ".3" }' \
    $(wildcard clientlib/*.3))

# The one list, of which uninstall is made too: MODE:SOURCE:TARGET, or link:WHERE-TO:TARGET, or
# conf:SOURCE:TARGET for a file that belongs to its administrator as soon as it was changed.
install_list := \
    755:$(CLI):$(bindir)/wharf \
    644:clientlib/cli/wharf.1:$(mandir)/man1/wharf.1 \
    $(foreach page,$(wildcard clientlib/*.3),644:$(page):$(mandir)/man3/$(notdir $(page))) $(page_links) \
    644:clientlib/cli/wharf.bash:$(completiondir)/wharf \
    644:clientlib/cli/wharf.zsh:$(zshcompletiondir)/_wharf \
    644:clientlib/cli/wharf.fish:$(fishcompletiondir)/wharf.fish \
    755:$(LIB_SO):$(libdir)/$(notdir $(LIB_SO)) \
    link:$(notdir $(LIB_SO)):$(libdir)/libwharf.so \
    644:$(LIB_A):$(libdir)/libwharf.a \
    644:$(BUILD)/wharf.pc:$(libdir)/pkgconfig/wharf.pc \
    644:clientlib/wharf.h:$(includedir)/wharf.h \
    644:encoders/wharf_codec.h:$(includedir)/wharf_codec.h \
    644:proto/wharf_job.h:$(includedir)/wharf_job.h \
    644:proto/wharf_result.h:$(includedir)/wharf_result.h \
    644:proto/wharf_ring.h:$(includedir)/wharf_ring.h \
    755:$(DAEMON):$(bindir)/wharfd \
    644:daemon/wharfd.8:$(mandir)/man8/wharfd.8 \
    644:daemon/wharfd.conf.5:$(mandir)/man5/wharfd.conf.5 \
    conf:$(BUILD)/wharfd.conf:$(sysconfdir)/wharf/wharfd.conf \
    644:systemd/wharfd.socket:$(unitdir)/wharfd.socket \
    644:$(BUILD)/wharfd.service:$(unitdir)/wharfd.service \
    644:systemd/wharfd.sysusers:$(sysusersdir)/wharfd.conf \
    644:systemd/wharfd.tmpfiles:$(tmpfilesdir)/wharfd.conf \
    644:proto/PROTOCOL.md:$(docdir)/PROTOCOL.md \
    644:proto/control.proto:$(docdir)/control.proto \
    644:encoders/FORMAT.md:$(docdir)/FORMAT.md \
    644:encoders/line/LINES.md:$(docdir)/LINES.md \
    644:clientlib/GPU_MEMORY.md:$(docdir)/GPU_MEMORY.md \
    644:daemon/DESIGN.md:$(docdir)/DESIGN.md \
    644:daemon/SECURITY.md:$(docdir)/SECURITY.md \
    644:systemd/wharf.rules.yml:$(docdir)/wharf.rules.yml \
    $(foreach page,$(wildcard encoders/*/*_format.h),644:$(page):$(docdir)/formats/$(notdir $(page))) \
    644:clientlib/example.c:$(docdir)/examples/example.c \
    644:clientlib/example_async.c:$(docdir)/examples/example_async.c \
    644:clientlib/example_gpu.c:$(docdir)/examples/example_gpu.c \
    $(if $(wildcard $(GPU_WORKER)),755:$(GPU_WORKER):$(libexecdir)/wharf/wharfd-gpu)

# The configuration that is installed is all comments, and what the daemon says itself.
$(BUILD)/wharfd.conf: $(DAEMON)
	$(Q)$(DAEMON) --print-config > $@

# The daemon needs to be told of a configuration that is not where it looks by itself.
unit_options = $(if $(filter /etc,$(sysconfdir)),, --config $(sysconfdir)/wharf/wharfd.conf)
$(BUILD)/wharfd.service: systemd/wharfd.service.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@bindir@|$(bindir)|' -e 's|@options@|$(unit_options)|' $< > $@

# Made anew each time: it depends on the folders that were named on the command line.
$(BUILD)/wharf.pc: clientlib/wharf.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@version@|$(VERSION)|' -e 's|@libs_private@|$(LIBRARY_LIBS)|' \
	    -e 's|@libdir@|$(patsubst $(prefix)/%,$${prefix}/%,$(libdir))|' \
	    -e 's|@includedir@|$(patsubst $(prefix)/%,$${prefix}/%,$(includedir))|' $< > $@

# Where systemd finds the units: whom the daemon would run as must be no person.  While a package is
# built the script is not here but in the package.
check_accounts = $(if $(and $(filter /usr /usr/local,$(prefix)),$(wildcard systemd/debian/wharfd.preinst)), \
    DPKG_ROOT="$(DESTDIR)" systemd/debian/wharfd.preinst install)

# The dynamic linker's list of libraries, unless a package is being made.
refresh_linker = if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

.PHONY: install uninstall
install: all $(if $(NVCC),$(wildcard $(GPU_WORKER))) $(BUILD)/wharf.pc $(BUILD)/wharfd.conf $(BUILD)/wharfd.service ## install under prefix (/usr/local), below DESTDIR if that is given
	$(Q)$(check_accounts)
	$(Q)set -e; for entry in $(install_list); do \
	    mode=$${entry%%:*}; rest=$${entry#*:}; source=$${rest%%:*}; target="$(DESTDIR)$${rest#*:}"; \
	    mkdir -p "$${target%/*}"; did=INSTALL; \
	    case $$mode in \
	    link) ln -sf "$$source" "$$target" ;; \
	    conf) if [ -e "$$target" ]; then did=KEEP; else install -m 644 "$$source" "$$target"; fi ;; \
	    *) install -m "$$mode" "$$source" "$$target" ;; \
	    esac; \
	    printf '  %-8s %s\n' "$$did" "$$target"; \
	done
	$(Q)$(refresh_linker)

uninstall: $(BUILD)/wharfd.conf ## remove what install put there; the same prefix and DESTDIR
	$(Q)set -e; for entry in $(install_list); do \
	    rest=$${entry#*:}; source=$${rest%%:*}; target="$(DESTDIR)$${rest#*:}"; did=REMOVE; \
	    case $$entry in conf:*) [ ! -e "$$target" ] || cmp -s "$$source" "$$target" || did=KEEP ;; esac; \
	    [ $$did = KEEP ] || rm -f "$$target"; \
	    printf '  %-8s %s\n' "$$did" "$$target"; \
	done
	$(Q)for folder in "$(DESTDIR)$(sysconfdir)/wharf" "$(DESTDIR)$(docdir)/examples" \
	    "$(DESTDIR)$(docdir)/formats" "$(DESTDIR)$(docdir)"; do \
	    [ ! -d "$$folder" ] || rmdir --ignore-fail-on-non-empty "$$folder"; \
	done
	$(Q)$(refresh_linker)

# ---- Debian packages -----------------------------------------------------------------------

# dpkg-buildpackage wants debian/ at the top: it gets a copy of the tree in which that is so.
deb_folder = build/deb/wharf-$(VERSION)
deb_tree   = .ci Makefile README.md LICENSE proto encoders kernels clientlib daemon systemd
# Misspelt words are NVIDIA's, in the library that the GPU's worker is linked with.
lintian    = lintian --allow-root --display-info --suppress-tags spelling-error-in-binary \
    --fail-on error,warning,info

.PHONY: deb
deb: ## build the Debian packages in build/deb and let lintian look at them; NVCC= for no GPU
	$(Q).ci/install-deps build deb
	$(Q)head -n 1 systemd/debian/changelog | grep -qF '($(VERSION))' || \
	    { echo 'systemd/debian/changelog does not begin with version $(VERSION)' >&2; exit 1; }
	$(Q)rm -rf build/deb && mkdir -p $(deb_folder)
	$(Q)cp -r $(deb_tree) $(deb_folder) && mv $(deb_folder)/systemd/debian $(deb_folder)
	$(Q)cd $(deb_folder) && unset MAKEFLAGS MFLAGS MAKELEVEL && \
	    dpkg-buildpackage -us -uc -b -j$(shell nproc) > ../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }
	$(Q)rm -rf $(deb_folder)
	$(Q)$(lintian) build/deb/*.changes
	@ls build/deb/*.deb

# ---- everything else -----------------------------------------------------------------------

demo: ## install what is missing, build, pack real files and unpack them by a private daemon
	$(Q).ci/install-deps build
	+$(Q)$(parallel) all $(if $(wildcard /dev/nvidiactl /dev/dxg),gpu-worker) $(BUILD)/bench/columns
	$(Q)tests/bench/demo.py $(BUILD)

deps: ## install the Debian packages that building and testing need
	$(Q).ci/install-deps build test

clean: ## remove everything that was built
	$(Q)rm -rf build

help: ## this list
	@awk -F'## ' '/^[a-z-]+:.*## / {split($$1, t, ":"); printf "  %-17s %s\n", t[1], $$2}' Makefile

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
