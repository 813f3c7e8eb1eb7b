# SPDX-License-Identifier: Apache-2.0
#
# Tests that need no GPU: their programs, what `make test` and its relatives run, checks of the tree,
# fuzzing.  tests/README.md says what is where.

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

# ---- programs ------------------------------------------------------------------------------

unit_src := $(wildcard tests/unit/*_test.c tests/unit/*_test.cc)
unit_bin := $(patsubst tests/unit/%,$(BUILD)/tests/%,$(basename $(unit_src)))
fuzz_bin := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))

TESTLIB := $(BUILD)/libtests.a
$(TESTLIB): $(call obj,$(wildcard tests/lib/*.c))

# For programs that run on machines without our libraries.
STATIC_LIBS := -static-libgcc -static-libstdc++ $(encoder_libs:%=-l:lib%.a) -l:libprotobuf-c.a -l:libboost_context.a -lm

# Criterion's own main(), except where direct_main.c says why not.
unit_main   := $(if $(filter asan tsan,$(VARIANT)),$(call obj,tests/unit/direct_main.c))
# Likewise for fuzz targets: our own main() that replays files, or clang's engine.
fuzz_main   := $(if $(filter fuzz,$(VARIANT)),,$(call obj,tests/fuzz/replay_main.c))
fuzz_engine := $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer)

# What tests call is to be quick; their own code, which is as much, is to be compiled quickly.  Of device
# code in it a sanitizer's test takes its time from what the optimiser leaves.
own_c_flags   := $(if $(filter release,$(VARIANT)),-Og -g1,$(if $(filter asan tsan,$(VARIANT)),-O0))
own_cxx_flags := $(if $(filter release,$(VARIANT)),-Og -g1)
$(BUILD)/obj/tests/unit/%.c.o: private ALL_CFLAGS += $(own_c_flags)
$(BUILD)/obj/tests/unit/%.cc.o: private ALL_CXXFLAGS += $(own_cxx_flags)

# What tests and fuzz targets link beside their own object; those of the daemon use its parts or run it.
test_parts   := $(unit_main) $(TESTLIB) $(simt_a) $(ENCODING_LIB)
wharfd_parts := $(unit_main) $(TESTLIB) $(DAEMON_A) $(ENCODING_LIB)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.c.o $(test_parts)
	$(call program,$(LIBS) $(SIMT_LIBS) -lcriterion)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.cc.o $(test_parts)
	$(call program,$(LIBS) $(SIMT_LIBS) -lcriterion)

$(BUILD)/tests/wharfd_%: $(BUILD)/obj/tests/unit/wharfd_%.c.o $(wharfd_parts) | $(DAEMON) $(SIMT_WORKER)
	$(call program,$(LIBS) $(DAEMON_LIBS) -lcriterion)

# Parts of the command, and of a GPU's worker.
$(BUILD)/tests/direct_write_test: $(call obj,clientlib/cli/direct_write.c)
$(BUILD)/tests/input_wide_test: $(call obj,$(patsubst %,clientlib/cli/%.c,input_wide input_file crew message stream_size))
$(BUILD)/tests/worker_populate_test: $(call obj,daemon/worker/worker_populate.c)

# It runs the command.
$(BUILD)/tests/hostile_daemon_command_test: | $(CLI)

# Where lld is there, it links these many programs in a third of the time.
$(BUILD)/tests/% $(BUILD)/fuzz/%: private ALL_LDFLAGS += $(test_linker)
test_linker := $(if $(shell command -v ld.lld 2>/dev/null),-fuse-ld=lld)

# The encoders that libwharf has, by the same tests.
plain_tests := $(patsubst %,$(BUILD)/tests/plain_%_test,encode compress_here)
unit_bin += $(plain_tests)
$(plain_tests): $(BUILD)/tests/plain_%: $(BUILD)/obj/tests/unit/%.c.o $(unit_main) $(TESTLIB) $(LIB_A)
	$(call program,$(LIBRARY_LIBS) -lcriterion)

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.c.o $(fuzz_main) $(TESTLIB) $(simt_a) $(ENCODING_LIB)
	$(call program,$(fuzz_engine) $(LIBS) $(SIMT_LIBS),$(CXX))

$(BUILD)/fuzz/wharfd_%: $(BUILD)/obj/tests/fuzz/wharfd_%.c.o $(fuzz_main) $(TESTLIB) $(DAEMON_A) $(ENCODING_LIB)
	$(call program,$(fuzz_engine) $(LIBS) $(DAEMON_LIBS),$(CXX))

# Every vector through every engine.
vectors_obj := $(call obj,tests/unit/vectors_main.c tests/unit/vector_engines.c)
VECTORS_BIN := $(BUILD)/tests/vectors
$(VECTORS_BIN): $(vectors_obj) $(TESTLIB) $(simt_a) $(ENCODING_LIB)
	$(call program,$(LIBS) $(SIMT_LIBS))

# A client for tests of the service; it uses whatever libwharf.so.0 the dynamic linker finds.
STEADY_CLIENT := $(BUILD)/tests/steady_client
$(STEADY_CLIENT): $(call obj,tests/integration/steady_client.c) $(LIB_SO)
	$(call program,-lz)

# Storms of requests, and what other clients wait beside them; one user who is hundreds of uids, and
# what a neighbour has beside them; what clients keep, and how soon the daemon has it back.
STORMS := $(BUILD)/tests/wharf_storms
OWNERS := $(BUILD)/tests/wharf_owners
HOLDS  := $(BUILD)/tests/wharf_holds
HOSTILE := $(STORMS) $(OWNERS) $(HOLDS)
$(STORMS): $(call obj,$(wildcard tests/hostile/storm*.c))
$(OWNERS): $(call obj,tests/hostile/owners_main.c tests/hostile/crowd.c)
$(HOLDS): $(call obj,tests/hostile/holds_main.c tests/hostile/crowd.c)
$(HOSTILE): $(call obj,tests/bench/bench_row.c) $(TESTLIB) $(ENCODING_LIB) | $(DAEMON) $(SIMT_WORKER)
	$(call program,$(LIBS))

# A whole daemon with its GPU, for machines with one; with the device's code on the CPU elsewhere.
GPU_DAEMON := $(BUILD)/tests/wharf_gpu_daemon
$(GPU_DAEMON): $(call obj,$(wildcard tests/gpu/gpu_daemon*.c) tests/gpu/gpu_pack.c) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB) | $(DAEMON) $(SIMT_WORKER) $(BUILD)/wharfd-poison
	$(call program,$(STATIC_LIBS),$(CXX))

# The daemon in whose GPU jobs can ask for faults, for tests of those.
$(BUILD)/wharfd-poison: $(call obj,daemon/wharfd.c tests/gpu/gpu_poison.c) $(DAEMON_A) $(LIB_A)
	$(call program,$(LIBRARY_LIBS) $(DAEMON_LIBS))

# ---- device code with every access to memory watched -----------------------------------------

# kernels/simt/race/race_watch.cc says how.  More optimisation leaves out loads that a GPU's compiler
# may keep.  Of variables that seem not to be set the other builds warn: with these calls in between
# gcc takes some that are set for such.
WATCH := -O1 -fsanitize=thread -Wno-maybe-uninitialized
$(BUILD)/obj/watched/%.cc.o: %.cc $(BUILD)/flags | $(device_codecs_h)
	$(say) CXX "$< (watched)"
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(WATCH) -fPIC -MMD -MP -c -o $@ $<

watch_obj := $(call obj,kernels/simt/race/race_watch.cc)
race_obj  := $(patsubst %,$(BUILD)/obj/watched/kernels/simt/%.cc.o,simt_batch simt_blosc simt_epoch simt_inflate) $(watch_obj)
race_libs := $(TESTLIB) $(SIMT_A) $(ENCODING_LIB)
$(BUILD)/race/tests/race_watch_test: $(BUILD)/obj/watched/tests/race/race_watch_test.cc.o $(watch_obj) $(SIMT_A)
	$(call program,$(SIMT_LIBS) -lcriterion)

$(BUILD)/race/vectors: $(vectors_obj) $(race_obj) $(race_libs)
	$(call program,$(LIBS) $(SIMT_LIBS))

# Unit tests of device code, those in C++ with device code of their own, and the fuzz target.
$(BUILD)/race/tests/%: $(BUILD)/obj/tests/unit/%.c.o $(race_obj) $(race_libs)
	$(call program,$(LIBS) $(SIMT_LIBS) -lcriterion)

$(BUILD)/race/tests/%: $(BUILD)/obj/watched/tests/unit/%.cc.o $(watch_obj) $(race_libs)
	$(call program,$(LIBS) $(SIMT_LIBS) -lcriterion)

$(BUILD)/race/%: $(BUILD)/obj/tests/fuzz/%.c.o $(fuzz_main) $(race_obj) $(race_libs)
	$(call program,$(LIBS) $(SIMT_LIBS))

# ---- what runs them -------------------------------------------------------------------------

.PHONY: test-hostile
HOSTILE_OUT ?=
test-hostile: all $(HOSTILE) ## what a tenant can do to others, measured: on a machine that does nothing else, as root; HOSTILE_OUT=FILE for rows
	$(Q)tests/hostile/run-hostile --build $(BUILD) --check $(HOSTILE_OUT:%=--out %)

.PHONY: test-programs test test-unit test-integration check fuzz generate format

# What this variant's tests need; `make test` builds it for three variants.  Tests of device code
# (.cc, and those with simt in their names) run a warp as coroutines of one thread: nothing for the
# thread sanitizer.
without_simt = $(foreach name,$(1),$(if $(findstring simt,$(name)),,$(name)))
# What codecs and containers share between threads, the tests of the client, the command and the
# daemon reach; their own tests have one thread, and under that sanitizer take minutes.
one_thread := bgzf_test container_damage_test container_place_test container_seek_test control_test decode_poll_test \
    direct_write_test encode_test extents_test inflate_% line_range_test line_test rans_chunk_test \
    rans_registered_test rans_test result_test rle1_forms_test source_kind_test wharfd_flood_test \
    wharfd_rate_probe_test work_queue_test zstd_stream_test
tsan_names := $(filter-out $(one_thread),$(call without_simt,$(patsubst tests/unit/%.c,%,$(filter %.c,$(unit_src)))))
.PHONY: print-tsan-names
print-tsan-names:
	@echo $(tsan_names)
test-programs: $(CLI) $(if $(filter tsan,$(VARIANT)),$(tsan_names:%=$(BUILD)/tests/%),$(unit_bin) $(fuzz_bin) $(VECTORS_BIN) $(GPU_DAEMON))

unit_names = $(notdir $(unit_bin))
fuzz_names = $(notdir $(fuzz_bin))
checks     = $(sort $(wildcard tests/check/*_check.*))
scripts    = $(wildcard tests/integration/*_test.sh tests/integration/*_test.py)
# The command's own scripts once more, with the command and the daemon that sanitizers watch: its buffers,
# and its threads.  SCRIPT or SCRIPT:PATTERN, of the tests whose names match.
asan_scripts := cat command_line daemon daemon_lost decode gzip_format:size|random|failures handover output pack range \
    salvage:random|headers|nested|bgzf|mistakes status why
tsan_scripts := cat:reader|everywhere|every_kind|bgzf_then daemon:bench|quotas daemon_lost:killed|lost \
    gzip_format:whoever handover:killed salvage:bgzf|next_member pack:thread|pipes|before
script_name   = $(firstword $(subst :, ,$(1)))
sanitized     = $(foreach script,$(2),"BUILD=build/$(1) ONLY=$(or $(word 2,$(subst :, ,$(script))),.) \
    tests/integration/$(call script_name,$(script))_test.sh")
# One word a program, with its arguments, as tests/run-tests takes them.
fuzz_inputs = tests/fuzz/corpus/$(1) $(shell grep -sv '^\#' tests/fuzz/$(1).inputs)
# The windows of a GPU's parts are what they are, however short its streams.
mutations_of = $(if $(filter inflate_device_fuzz,$(1)),$(shell expr $(MUTATIONS) / 50),$(MUTATIONS))
replays    = $(foreach f,$(fuzz_names),"build/asan/fuzz/$(f) --mutations $(call mutations_of,$(f)) $(call fuzz_inputs,$(f))")

# Looking for uses of a stack after its function's return takes a third of the time of coroutines' many
# small calls; decoders that run on the CPU are tested with that by their own tests.
fake_stacks_off := ASAN_OPTIONS=detect_stack_use_after_return=0
asan_runs = $(foreach name,$(unit_names),"$(if $(findstring simt,$(name)),$(fake_stacks_off) )build/asan/tests/$(name)")

# Committed vectors, and with VECTORS those of a further folder, by way of a table.
vector_runs := "$(fake_stacks_off) build/asan/tests/vectors --one-order tests/vectors" "build/release/tests/vectors tests/vectors"
# A daemon with a worker: every vector, and storms with all that can be killed being killed.  Decoders'
# bounds are what the vectors' own program watches; codecs with and without models pass a daemon alike.
daemon_runs := "build/release/tests/wharf_gpu_daemon --engine simt vectors tests/vectors" \
    $(foreach f,lz4 rans,"build/asan/tests/wharf_gpu_daemon --engine simt vectors tests/vectors/$(f)") \
    $(foreach v,asan release,"build/$(v)/tests/wharf_gpu_daemon --engine simt check 1500" \
    "build/$(v)/tests/wharf_gpu_daemon --engine simt soak 1") \
    "build/release/tests/wharf_gpu_daemon --engine simt faults" \
    "WHARF_TEST_GPU=simt build/release/tests/wharfd_hostile_test"
ifneq ($(VECTORS),)
# Too many for the sanitizers, which see the committed ones; untouchable pages guard these.
vector_runs += "build/release/tests/vectors --one-order build/vectors.table $(VECTORS)"
vector_runs += "build/release/tests/vectors --one-order build/vectors-orc.table build/vectors-orc"
vector_runs += "tests/integration/cat_vectors.py $(VECTORS)"
vector_runs += "tests/integration/rans_vectors.py $(VECTORS)"
vector_runs += "VECTORS=$(abspath $(VECTORS)) ONLY=other_writers tests/integration/orc_test.sh"
endif

# All variants by one make, so that none of them waits for the last objects of another.  The thread
# sanitizer's takes a program of the release's.  Of clang only its warnings are wanted, which no
# optimisation changes.
.PHONY: test-builds build-release build-asan build-tsan build-clang
test-builds: build-release build-asan build-tsan build-clang
build-release:
	+$(Q)$(MAKE) VARIANT=release all test-programs $(STEADY_CLIENT)
build-asan:
	+$(Q)$(MAKE) VARIANT=asan test-programs
build-tsan: build-release
	+$(Q)$(MAKE) VARIANT=tsan test-programs
build-clang:
	+$(Q)$(MAKE) BUILD=build/clang CC=clang CXX=clang++ CFLAGS='-O0 -g0' CXXFLAGS='-O0 -g0' all

test: deps ## install what is missing, then run all tests that need no GPU; VECTORS=DIR for more
	+$(Q)$(parallel) test-builds
	$(if $(VECTORS),$(Q)tests/lib/vector_table.py $(VECTORS) > build/vectors.table)
	$(if $(VECTORS),$(Q)tests/lib/orc_vectors.py $(VECTORS) build/vectors-orc > build/vectors-orc.table)
	$(if $(LAB),$(Q).ci/install-deps lab)
	$(if $(LAB),+$(Q)$(MAKE) deb NVCC=)
	$(Q)LAB="$(LAB)" tests/run-tests $(vector_runs) $(call sanitized,asan,$(asan_scripts)) $(call sanitized,tsan,$(tsan_scripts)) $(daemon_runs) $(checks) $(scripts) \
	    "tests/integration/python_client_test.py --build build/asan" \
	    $(foreach v,asan tsan,"BUILD=build/$(v) tests/integration/columns_test.py") \
	    $(foreach v,asan tsan,"tests/integration/python_module_test.py --build build/$(v)") \
	    "tests/integration/python_standins_test.py --build build/asan _(zlib|gzip|streams|pieces|buffers)" "tests/integration/python_files_test.py --build build/asan" \
	    "tests/integration/python_arrays_test.py --build build/asan" \
	    $(tsan_names:%=build/tsan/tests/%) \
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
    rans_chains_simt_test rans_pieces_simt_test line_encode_simt_test line_load_simt_test line_store_simt_test line_assist_simt_test gpu_assist_simt_test example_decoder_simt_test
race_runs  = "$(BUILD)/race/tests/race_watch_test" "$(BUILD)/race/vectors --device tests/vectors" \
    $(race_tests:%="$(BUILD)/race/tests/%") \
    "$(BUILD)/race/device_fuzz --mutations $(MUTATIONS) $(call fuzz_inputs,device_fuzz)"
.PHONY: test-races race-programs
race-programs: $(addprefix $(BUILD)/race/,vectors device_fuzz tests/race_watch_test $(race_tests:%=tests/%))
test-races: deps ## device decoders with every access to memory watched for races of lanes
	+$(Q)$(parallel) race-programs
	$(Q)tests/run-tests $(race_runs)

.PHONY: test-callers
CALLERS_OUT ?=
test-callers: all ## programs that exist under `wharf run` and without it, as far as they are installed; Python packages that decode by wharf
	$(Q)tests/callers/packages.py --build $(BUILD)
	$(Q)tests/callers/callers.py --build $(BUILD) $(CALLERS_OUT:%=--out %)
	$(Q)tests/callers/hdf5_filters.py --build $(BUILD)
	$(Q)tests/callers/cdi_podman.py --build $(BUILD)
	$(Q)tests/callers/dashboard_prometheus.py --build $(BUILD)
	$(Q)tests/callers/kubernetes_plugin.py --build $(BUILD)
	$(Q)tests/callers/engine_examples.py --build $(BUILD)
	+$(Q)tests/callers/clean_installs.py --build $(BUILD)

check: all ## layering, names, format, exported symbols, scripts, manual pages
	$(Q)BUILD=$(BUILD) tests/run-tests $(checks)

fuzz: ## fuzz every target for FUZZ_SECONDS (60), after a million fixed mutations each
	$(Q).ci/install-deps build test
	+$(Q)$(parallel) $(fuzz_names:%=build/release/fuzz/%)
	+$(Q)$(parallel) VARIANT=fuzz CC=clang CXX=clang++ $(fuzz_names:%=build/fuzz/fuzz/%)
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run-fuzz $(fuzz_names)

generate: ## write the lists of codecs in documents and headers from the rows
	$(Q)tests/check/codec_lists_check.py --write

format: ## clang-format all sources
	$(Q)clang-format -i $(shell find $(wildcard proto encoders kernels daemon clientlib tests) \
	    -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh')
