# SPDX-License-Identifier: Apache-2.0
#
# What tests and measures the GPU: its programs, `make test-gpu` and its relatives.

# ---- programs ------------------------------------------------------------------------------

# Device code on a GPU, in programs that run on machines without our libraries.
GPU_LIBS := -static-libgcc -static-libstdc++ $(encoder_libs:%=-l:lib%.a) -l:libboost_context.a $(CUDA_LIBS)
gpu_obj_of = $(call obj,$(addprefix tests/gpu/,$(1)))

$(BUILD)/wharf_gpu_test: $(call gpu_obj_of,gpu_test_main.c gpu_cases.c gpu_check.c)
$(BUILD)/wharf_gpu_bench: $(call gpu_obj_of,gpu_bench_main.c gpu_pack.c gpu_symbols.c)
$(BUILD)/wharf_gpu_epoch: $(call gpu_obj_of,gpu_epoch_main.c gpu_epoch_check.c gpu_epoch_jobs.c gpu_epoch_measure.c \
    gpu_epoch_import.c gpu_epoch_parts.c gpu_pack.c gpu_export.cu gpu_client.cu gpu_tenant.cu)
$(BUILD)/wharf_gpu_rans: $(call gpu_obj_of,gpu_rans_main.cu gpu_rans_stream.c gpu_symbols.c gpu_pack.c)
$(BUILD)/wharf_gpu_library: $(call gpu_obj_of,gpu_library_main.c)
$(BUILD)/wharf_gpu_inflate: $(call gpu_obj_of,gpu_inflate_main.c gpu_gzip.c) $(call obj,tests/bench/bench_row.c)
$(BUILD)/wharf_gpu_chain: $(call gpu_obj_of,gpu_chain_main.c gpu_pack.c) $(call obj,tests/bench/bench_row.c)
$(BUILD)/wharf_gpu_line: $(call gpu_obj_of,gpu_line_main.cu)
$(BUILD)/wharf_gpu_lines: $(call gpu_obj_of,gpu_lines_main.c)
$(BUILD)/tests/gpu_assist_simt_test $(BUILD)/race/tests/gpu_assist_simt_test: $(call gpu_obj_of,gpu_assist_data.c)
$(call gpu_obj_of,gpu_library_main.c gpu_inflate_main.c gpu_chain_main.c gpu_lines_main.c): private ALL_CFLAGS += -isystem $(CUDA_HOME)/include
$(BUILD)/wharf_gpu_%: $(call gpu_obj_of,gpu_device_simt.c gpu_device_cuda.cu gpu_device_library.c) $(gpu_obj) \
    $(call obj,$(wildcard clientlib/cuda/*_calls.c)) $(TESTLIB) $(SIMT_A) $(ENCODING_LIB)
	$(call program,$(GPU_LIBS),$(CXX))

# Kernels of other programs, which need headers alone.
$(BUILD)/wharf_gpu_assist: $(call gpu_obj_of,gpu_assist_main.cu gpu_assist_data.c gpu_compressible.cu gpu_energy.c) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(GPU_LIBS),$(CXX))

# Somebody else's program: it has nothing of ours but the checks of CUDA's calls.
GPU_TENANT := $(BUILD)/wharf_gpu_tenant
$(GPU_TENANT): $(call gpu_obj_of,gpu_tenant_main.c gpu_tenant.cu) $(call obj,kernels/cuda_error.cu)
	$(call program,-static-libgcc -static-libstdc++ $(CUDA_LIBS),$(CXX))

# A client that uses CUDA, and the daemon's GPU.
GPU_MEMORY := $(BUILD)/tests/wharf_gpu_memory
$(GPU_MEMORY): $(call gpu_obj_of,gpu_memory_main.c gpu_memory_measure.c gpu_memory_parts.c gpu_memory_share.c gpu_client.cu gpu_pack.c) \
    $(call obj,kernels/cuda_error.cu) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS) -l:libdeflate.a $(CUDA_LIBS),$(CXX))

# A client that has such a GPU compress.
GPU_COMPRESS := $(BUILD)/tests/wharf_gpu_compress
$(GPU_COMPRESS): $(call gpu_obj_of,gpu_compress_main.c gpu_memory_parts.c gpu_client.cu) $(call obj,tests/bench/bench_row.c) \
    $(call obj,kernels/cuda_error.cu) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS) $(CUDA_LIBS),$(CXX))

# A client with large streams, which the whole GPU decodes.
GPU_LARGE := $(BUILD)/tests/wharf_gpu_large
$(GPU_LARGE): $(call gpu_obj_of,gpu_large_main.c gpu_gzip.c gpu_memory_parts.c gpu_client.cu) $(call obj,tests/bench/bench_row.c) \
    $(call obj,kernels/cuda_error.cu) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS) $(CUDA_LIBS),$(CXX))

# A client whose chunks come again.
GPU_MEMO := $(BUILD)/tests/wharf_gpu_memo
$(GPU_MEMO): $(call gpu_obj_of,gpu_memo_main.c gpu_memory_parts.c gpu_client.cu) $(call obj,tests/bench/bench_row.c) \
    $(call obj,kernels/cuda_error.cu) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS) $(CUDA_LIBS),$(CXX))

# A client whose streams and jobs wait for each other.
GPU_STREAM := $(BUILD)/tests/wharf_gpu_stream
$(GPU_STREAM): $(call gpu_obj_of,gpu_stream_main.c gpu_stream.cu gpu_client.cu gpu_pack.c) \
    $(call obj,kernels/cuda_error.cu) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS) $(CUDA_LIBS),$(CXX))

# As its comment says, but for the libraries.
GPU_EXAMPLE := $(BUILD)/tests/example_gpu
$(GPU_EXAMPLE): clientlib/example_gpu.c $(LIB_A)
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Iclientlib -Iproto -Iencoders \
	    -isystem $(CUDA_HOME)/include -o $@ $^ $(STATIC_LIBS) -L$(CUDA_HOME)/lib64/stubs -lcuda

# A worker as quick as a processor, for profiling the daemon where there is no GPU.
$(BUILD)/tests/wharfd-host: $(worker_obj) $(call gpu_obj_of,engine_host.c) $(DAEMON_A) $(SIMT_A) $(LIB_A)
	$(call program,$(LIBS) $(SIMT_LIBS))

# ---- what runs them ------------------------------------------------------------------------

.PHONY: gpu-programs test-gpu test-gpus bench-gpu study-assist study-gpu
gpu-programs: ## the GPU's worker, its tests and benchmarks, with nvcc
	$(if $(NVCC),,$(error there is no nvcc on PATH or in /usr/local/cuda: install the CUDA toolkit, or set NVCC))
	$(Q)$(MAKE) cuda $(BUILD)/wharf_gpu_test $(BUILD)/wharf_gpu_bench $(BUILD)/wharf_gpu_rans $(BUILD)/wharf_gpu_epoch $(GPU_TENANT) $(GPU_WORKER) $(DAEMON) $(GPU_DAEMON) $(GPU_MEMORY) $(GPU_COMPRESS) $(GPU_LARGE) $(GPU_MEMO) $(GPU_STREAM) $(GPU_EXAMPLE) $(BUILD)/tests/example_cuda $(BUILD)/tests/example_line_arrives $(BUILD)/wharf_gpu_library $(BUILD)/wharf_gpu_inflate $(BUILD)/wharf_gpu_chain $(BUILD)/wharf_gpu_line $(BUILD)/wharf_gpu_lines $(BUILD)/wharf_gpu_assist

# What of kernels is counted there: guards, instructions, registers, stack.
kernel_obj := $(call obj,$(wildcard kernels/*_kernel.cu))
.PHONY: check-device-code
check-device-code: ## hold the GPU's machine code to kernels/*/*.limits; takes nvcc and cuobjdump
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
# Of programs that print rows, or nothing.
one_test  := tests/lib/as_one_test
sanitizer := $(firstword $(wildcard $(CUDA_HOME)/bin/compute-sanitizer) compute-sanitizer)
# A tool of it, as in $(call checked_by,memcheck), and the arguments of the test's.
checked_by = $(sanitizer) --tool $(1) --error-exitcode 9
gpu_runs  := "$(gpu_test) vectors tests/vectors" "$(gpu_test) --any-codec vectors tests/vectors" \
    "$(gpu_test) --serial vectors tests/vectors" "$(gpu_test) --serial-registers vectors tests/vectors" \
    "$(gpu_test) --serial-prefetch vectors tests/vectors" \
    "$(gpu_test) generated 20" "$(gpu_test) --any-codec generated 3" "$(gpu_test) --serial generated 3" \
    "$(gpu_test) forged $(FORGED)" "$(gpu_test) --serial forged 2000" \
    "$(gpu_test) --serial-registers forged 2000" "$(gpu_test) damaged $(DAMAGED)" \
    "$(gpu_test) --block vectors tests/vectors" "$(gpu_test) --block generated 20" \
    "$(gpu_test) --block forged 5000" "$(gpu_test) --block damaged 100000" \
    "$(gpu_test) --crew vectors tests/vectors" "$(gpu_test) --crew generated 20" \
    "$(gpu_test) --crew damaged 100000" \
    $(foreach tool,memcheck racecheck,"$(call checked_by,$(tool)) $(gpu_test) --own-memory --crew vectors tests/vectors") \
    "$(gpu_test) --indexed vectors tests/vectors" "$(gpu_test) --indexed generated 20" \
    "$(gpu_test) --indexed damaged 100000" \
    "$(call checked_by,memcheck) $(gpu_test) --own-memory --indexed damaged $(DAMAGED_CHECKED)" \
    $(foreach tool,memcheck racecheck,"$(call checked_by,$(tool)) $(gpu_test) --own-memory --block vectors tests/vectors") \
    "$(call checked_by,memcheck) $(gpu_test) --own-memory --block forged $(FORGED_CHECKED)" \
    "$(call checked_by,memcheck) $(gpu_test) --own-memory forged $(FORGED_CHECKED)" \
    "$(call checked_by,memcheck) $(gpu_test) --own-memory damaged $(DAMAGED_CHECKED)" \
    $(foreach tool,memcheck racecheck initcheck,"$(call checked_by,$(tool)) $(gpu_test) --own-memory vectors tests/vectors")
# What programs get: the public calls, and the same by graphs.
gpu_runs  += "$(BUILD)/wharf_gpu_library" "$(BUILD)/wharf_gpu_inflate" "$(BUILD)/wharf_gpu_chain" \
    "$(call checked_by,memcheck) $(BUILD)/wharf_gpu_chain rle2:i64" "$(gpu_test) --engine library vectors tests/vectors" "$(gpu_test) --engine library --graph vectors tests/vectors" \
    "$(gpu_test) --engine library generated 3" "$(gpu_test) --engine library damaged $(DAMAGED)" \
    "$(gpu_test) --engine library --graph damaged 100000" \
    "$(call checked_by,memcheck) $(gpu_test) --own-memory --engine library damaged $(DAMAGED_CHECKED)"
# Kernels that read and write arrays which stay compressed.
gpu_runs  += "$(one_test) $(BUILD)/wharf_gpu_line 16" "$(one_test) $(BUILD)/wharf_gpu_lines 16" \
    "$(one_test) $(call checked_by,memcheck) $(BUILD)/wharf_gpu_line 1"
gpu_runs  += "$(one_test) $(BUILD)/tests/example_line" "$(one_test) $(call checked_by,memcheck) $(BUILD)/tests/example_line" \
    "$(one_test) $(call checked_by,racecheck) $(BUILD)/tests/example_line_arrives"
gpu_runs  += "$(GPU_DAEMON) vectors tests/vectors" "$(GPU_DAEMON) check 20000" "$(GPU_DAEMON) soak $(SOAK_SECONDS)" \
    "WHARF_TEST_GPU=cuda $(BUILD)/tests/wharfd_hostile_test" \
    "$(GPU_DAEMON) faults" "$(GPU_DAEMON) --setting kernel=batch faults" "$(GPU_DAEMON) sessions $(SESSIONS)"
# And as the service runs it.
gpu_runs  += "tests/lib/under_unit.py run $(BUILD)/restrictions $(GPU_DAEMON) vectors tests/vectors" \
    "tests/lib/under_unit.py run $(BUILD)/restrictions $(GPU_DAEMON) check 2000" \
    "$(GPU_DAEMON) --setting kernel=batch vectors tests/vectors" "$(GPU_DAEMON) --setting kernel=batch check 5000"
$(BUILD)/restrictions: $(BUILD)/wharfd.service tests/lib/under_unit.py
	$(Q)tests/lib/under_unit.py compile $< > $@
gpu_runs  += "$(GPU_LARGE)" "$(GPU_STREAM) check 100000" "$(GPU_MEMORY) check 1000" "$(GPU_MEMO) check" "$(GPU_COMPRESS) check 3" \
    "tests/lib/under_unit.py run $(BUILD)/restrictions $(GPU_MEMORY) check 300"
gpu_epoch := $(one_test) $(BUILD)/wharf_gpu_epoch
gpu_runs  += "$(gpu_epoch) check 20000" "$(gpu_epoch) --idle 50 --stay 300 check 20000" \
    "$(gpu_epoch) --per-batch check 5000" "$(gpu_epoch) noops 100000" \
    "$(gpu_epoch) cancel deflate $(BUILD)/column 131072 300" \
    "$(gpu_epoch) import deflate $(BUILD)/column 16384" \
    "$(gpu_epoch) parts rans $(BUILD)/column 65536 20" \
    "$(one_test) $(call checked_by,memcheck) $(BUILD)/wharf_gpu_epoch --per-batch --warps 64 check 300"
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

study-assist: gpu-programs bench-programs $(DAEMON) ## what kernels gain that read compressed arrays: all of tests/bench/assist-study; DATA=DIR
	$(Q)tests/bench/assist-study $(if $(DATA),--data $(DATA))

study-gpu: gpu-programs $(BUILD)/bench/columns ## what limits decoders on the GPU: all of tests/bench/gpu-study
	$(Q)tests/bench/gpu-study
