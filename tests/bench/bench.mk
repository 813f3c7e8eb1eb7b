# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks: their programs, what runs them, and the tables of their results.

bench_bin := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/*_bench.c)) \
    $(addprefix $(BUILD)/bench/,columns line_arrays line_sizes rans_sizes orc_decode)

$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.c.o $(call obj,$(wildcard tests/bench/bench_*.c)) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(LIBS))

$(BUILD)/bench/columns: $(call obj,tests/bench/columns.c)
	$(call program,-lm)

# What the daemon costs takes more than one file, and the daemon.
$(BUILD)/bench/wharfd_bench: $(call obj,$(wildcard tests/bench/daemon_*.c)) | $(DAEMON) $(CLI) $(BUILD)/bench/files_limit.so

$(BUILD)/bench/files_limit.so: $(call obj,tests/bench/files_limit.c)
	$(call program,-shared)

# It runs on machines without our libraries.
$(BUILD)/bench/share_client: $(call obj,tests/bench/share_client.c) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS),$(CXX))

# It goes with wharf_gpu_assist.
$(BUILD)/bench/line_arrays: $(call obj,tests/bench/line_arrays.c tests/bench/bench_row.c) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS),$(CXX))

# Damaged chunks for libraries.  It runs on machines without ours, and loads libwharf-cuda if it is there.
$(BUILD)/bench/damage: $(call obj,$(wildcard tests/bench/damage_*.c) clientlib/cli/gpu_card.c) $(TESTLIB) $(ENCODING_LIB)
	$(call program,$(STATIC_LIBS),$(CXX))

test-programs test-integration: $(if $(filter tsan,$(VARIANT)),,$(BUILD)/bench/damage)

# nvCOMP's part of it, where nvCOMP is unpacked: a folder with include and lib64.
NVCOMP_HOME ?=
.PHONY: nvcomp-damage
nvcomp-damage: $(BUILD)/bench/nvcomp_damage
$(BUILD)/bench/nvcomp_damage: tests/gpu/nvcomp_damage.cu tests/bench/damage_files.c tests/bench/damage_files.h
	$(if $(NVCC),,$(error there is no nvcc on PATH or in /usr/local/cuda: install the CUDA toolkit, or set NVCC))
	$(if $(NVCOMP_HOME),,$(error NVCOMP_HOME has to be where nvCOMP is))
	$(say) NVCC $@
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O2 -I. -I$(NVCOMP_HOME)/include -o $@ $(filter-out %.h,$^) -L$(NVCOMP_HOME)/lib64 -l:libnvcomp.so.6 \
	    -Xlinker -rpath -Xlinker '$$ORIGIN'
	$(Q)cp -u $(NVCOMP_HOME)/lib64/libnvcomp.so.6 $(@D)/

.PHONY: bench bench-programs
bench-programs: $(bench_bin)

# A folder with dickens, nci and taxi.csv, as tests/README.md says; without it they are left out.
DATA ?=
bench: deps ## measure against peers on this CPU; DATA=DIR for more data
	+$(Q)$(parallel) all bench-programs
	$(Q)BUILD=$(BUILD) tests/bench/run-bench --build $(BUILD) $(if $(DATA),--data $(DATA))

.PHONY: bench-daemon
daemon_rows = tests/bench/results/$(shell date -u +%F)-daemon.jsonl
bench-daemon: deps ## measure what the daemon costs, alone; DATA=DIR for more data
	+$(Q)$(parallel) all bench-programs
	$(Q)tests/bench/run-bench --build $(BUILD) --only wharfd_bench --out $(daemon_rows) $(if $(DATA),--data $(DATA))
	$(Q)tests/bench/report $(daemon_rows)

.PHONY: results
results: ## make the tables of results, and the plots, from the rows in tests/bench/results
	$(Q)tests/bench/write-results
