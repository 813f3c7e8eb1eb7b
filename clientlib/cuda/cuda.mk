# SPDX-License-Identifier: Apache-2.0
#
# libwharf-cuda: the decoders for programs that have a CUDA context.  `make cuda` builds it, with
# nvcc, which takes minutes; `make install` installs it where it was built.

CUDA_SO := $(BUILD)/libwharf-cuda.so.$(ABI)
CUDA_A  := $(BUILD)/libwharf-cuda.a
cuda_calls_obj := $(call obj,$(wildcard clientlib/cuda/*_calls.c))
cuda_obj := $(cuda_calls_obj) $(call obj,$(addprefix kernels/,batch_kernel.cu blosc_kernel.cu chain_sources.cu chunk_sizes.cu inflate_kernel.cu line_kernel.cu rans_kernel.cu cuda_error.cu inflate_plan.c rans_pieces.c))

# What it takes of libwharf's objects is in it, and nobody sees it.
$(CUDA_SO): $(cuda_obj) $(LIB_A) clientlib/cuda/libwharf-cuda.map
	$(say) LD $@
	$(Q)$(CXX) -shared $(ALL_LDFLAGS) -Wl,-soname,$(notdir $@) -Wl,--version-script=clientlib/cuda/libwharf-cuda.map \
	    -Wl,--no-undefined -static-libgcc -static-libstdc++ -o $@ $(cuda_obj) $(LIB_A) $(CUDA_LIBS) -lm
	$(Q)ln -sf $(notdir $@) $(BUILD)/libwharf-cuda.so

# Programs link libwharf.a behind it.
$(CUDA_A): $(cuda_obj)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# wharf_line.cuh and its relatives for programs that have none of this tree: with all that they
# include in them.
LINE_HEADERS := $(addprefix $(BUILD)/include/,wharf_line.cuh wharf_group.cuh wharf_assist.cuh wharf_pick.cuh)
$(LINE_HEADERS): $(BUILD)/include/%: clientlib/cuda/flatten_header.awk $(wildcard kernels/*.cuh kernels/line/*.cuh encoders/*.h encoders/*/*_format.h proto/*.h)
	$(say) FLATTEN kernels/line/$*
	@mkdir -p $(@D)
	$(Q)awk -f $< kernels/line/$* > $@.new && mv $@.new $@

.PHONY: cuda
cuda: $(if $(NVCC),$(CUDA_SO) $(CUDA_A) $(LINE_HEADERS)) ## libwharf-cuda, the decoders for programs that use CUDA, with nvcc; before `make install`
	$(if $(NVCC),,@echo '$(no_gpu)')

# Its calls, with the SIMT layer in a GPU's place: for the test of them, and for programs of tests.
cuda_simt_src := tests/gpu/cuda_batch_simt.cc tests/gpu/inflate_simt.cc
cuda_simt_own := $(cuda_calls_obj) $(call obj,kernels/inflate_plan.c kernels/rans_pieces.c)
cuda_simt_obj := $(cuda_simt_own) $(call obj,$(cuda_simt_src))
$(addprefix $(BUILD)/tests/,cuda_calls_simt_test cuda_chain_simt_test cuda_inflate_simt_test): $(cuda_simt_obj)
$(addprefix $(BUILD)/race/tests/,cuda_calls_simt_test cuda_chain_simt_test cuda_inflate_simt_test): $(cuda_simt_own) $(cuda_simt_src:%=$(BUILD)/obj/watched/%.o)
CUDA_SIMT_A := $(BUILD)/tests/libwharf-cuda-simt.a
$(CUDA_SIMT_A): $(cuda_simt_obj)
	$(say) AR $@
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The same for programs that load the library, with what stands in for CUDA's driver beside it.
CUDA_SIMT_SO := $(addprefix $(BUILD)/tests/cuda-simt/,libwharf-cuda.so.$(ABI) libcuda.so.1)
$(BUILD)/tests/cuda-simt/libwharf-cuda.so.$(ABI): $(cuda_simt_obj) $(SIMT_A) $(LIB_A) clientlib/cuda/libwharf-cuda.map
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared $(ALL_LDFLAGS) -Wl,-soname,$(notdir $@) -Wl,--version-script=clientlib/cuda/libwharf-cuda.map \
	    -o $@ $(cuda_simt_obj) $(SIMT_A) $(LIB_A) $(SIMT_LIBS) -lm
$(BUILD)/tests/cuda-simt/libcuda.so.1: $(call obj,tests/gpu/driver_simt.c tests/gpu/driver_simt_memory.c)
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(notdir $@) -o $@ $^

test-programs test-integration: $(if $(filter tsan,$(VARIANT)),,$(CUDA_SIMT_SO))

# As its comment says, but for the libraries.
CUDA_EXAMPLE := $(BUILD)/tests/example_cuda
$(CUDA_EXAMPLE): clientlib/cuda/example_cuda.c $(CUDA_A) $(LIB_A)
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Iclientlib/cuda -Iproto -Iencoders \
	    -isystem $(CUDA_HOME)/include -o $@ $^ $(CUDA_LIBS) -static-libgcc -l:libstdc++.a -lm -pthread

# As its comment says, but for the libraries; of wharf's headers it sees those that are installed.
LINE_EXAMPLE := $(BUILD)/tests/example_line
line_example_cmd = $(NVCC) -std=c++17 -O3 -arch=sm_80 -Iclientlib/cuda -I$(BUILD)/include -isystem proto -isystem encoders
$(LINE_EXAMPLE): clientlib/cuda/example_line.cu $(LINE_HEADERS) $(CUDA_A) $(LIB_A)
	$(say) NVCC $<
	@mkdir -p $(@D)
	$(Q)$(line_example_cmd) -o $@ $< $(CUDA_A) $(LIB_A) -lm
# For racecheck, which follows a barrier from lanes that arrive at it and from no others.
$(LINE_EXAMPLE)_arrives: clientlib/cuda/example_line.cu $(LINE_HEADERS) $(CUDA_A) $(LIB_A)
	$(say) NVCC $<
	@mkdir -p $(@D)
	$(Q)$(line_example_cmd) -DWHARF_ALL_LANES_ARRIVE -o $@ $< $(CUDA_A) $(LIB_A) -lm
ifneq ($(NVCC),)
cuda: $(LINE_EXAMPLE)
endif

# ---- install -------------------------------------------------------------------------------

cmakedir = $(libdir)/cmake/wharf_cuda
cuda_install_list = \
    755:$(CUDA_SO):$(libdir)/$(notdir $(CUDA_SO)) \
    link:$(notdir $(CUDA_SO)):$(libdir)/libwharf-cuda.so \
    644:$(CUDA_A):$(libdir)/libwharf-cuda.a \
    644:$(BUILD)/wharf-cuda.pc:$(libdir)/pkgconfig/wharf-cuda.pc \
    644:$(BUILD)/wharf_cuda-config.cmake:$(cmakedir)/wharf_cuda-config.cmake \
    644:clientlib/cuda/wharf_cuda.h:$(includedir)/wharf_cuda.h \
    $(foreach header,$(LINE_HEADERS),644:$(header):$(includedir)/$(notdir $(header))) \
    $(call pages_of,clientlib/cuda) \
    644:clientlib/cuda/NVCOMP.md:$(docdir)/NVCOMP.md \
    644:clientlib/cuda/example_cuda.c:$(docdir)/examples/example_cuda.c \
    644:clientlib/cuda/example_line.cu:$(docdir)/examples/example_line.cu
is_cuda_built := $(and $(wildcard $(CUDA_SO)),$(wildcard $(CUDA_A)))
install_list += $(if $(is_cuda_built),$(cuda_install_list))
install: $(if $(is_cuda_built),$(LINE_HEADERS) $(BUILD)/wharf-cuda.pc $(BUILD)/wharf_cuda-config.cmake)

# Made anew each time, as wharf.pc is.
$(BUILD)/wharf-cuda.pc: clientlib/cuda/wharf-cuda.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@version@|$(VERSION)|' \
	    -e 's|@libdir@|$(patsubst $(prefix)/%,$${prefix}/%,$(libdir))|' \
	    -e 's|@includedir@|$(patsubst $(prefix)/%,$${prefix}/%,$(includedir))|' $< > $@
$(BUILD)/wharf_cuda-config.cmake: clientlib/cuda/wharf_cuda-config.cmake.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@version@|$(VERSION)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' $< > $@
