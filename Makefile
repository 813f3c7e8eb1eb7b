# SPDX-License-Identifier: Apache-2.0
#
# wharf's build: configuration, products and their installation.  What builds and runs tests,
# benchmarks and packages is beside these, in files *.mk.  `make help` lists the targets; `make V=1`
# shows every command; `make VARIANT=debug|asan|tsan` builds in a folder of its own.

VERSION := 0.1.0
ABI     := 0

VARIANT ?= release
PREFIX  ?= /usr/local
prefix  ?= $(PREFIX)
DESTDIR ?=
BUILD   := build/$(VARIANT)

# ---- tools and flags -----------------------------------------------------------------------

# make presets CC and CXX, so that `?=` would never apply.
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
ifeq ($(origin NVCC),undefined)
NVCC := $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
endif
PROTOC_C ?= protoc-c

# With -Og the address sanitizer's build takes half the processor time to compile, and its tests of
# device code a tenth more to run.
variant_release := -O2
variant_debug   := -O0
variant_asan    := -Og -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
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

# Machine code for the A100 and the H100, and PTX for what comes later.  Compressed, it is a third.
CUDA_ARCHS ?= 80 90
NVCC_FLAGS := -std=c++17 -O3 -I. -Iproto -Iencoders -I$(BUILD)/gen -Xcompiler -Wall,-Wextra,-fPIC \
    -compress-mode=size \
    $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
    -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CUDA_HOME  := $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
CUDA_LIBS  := -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt

# Encoders whose libraries those who only decode need not load: libwharf and the GPU's worker have the
# codec's NAME_encode_plain.c instead, all other programs, the daemon among them, NAME_encode.c.
plain_encoders := $(wildcard encoders/*/*_encode_plain.c)
full_encoders  := $(plain_encoders:%_plain.c=%.c)
# Of encoders: each codec's folder names its own.
encoder_libs := $(sort $(shell grep -hv '^\#' encoders/*/*_libraries))
library_libs := $(sort $(shell grep -hv '^\#' $(filter-out $(full_encoders:%_encode.c=%_libraries),$(wildcard encoders/*/*_libraries))))
LIBS         := $(encoder_libs:%=-l%) -lprotobuf-c -lm
LIBRARY_LIBS := $(library_libs:%=-l%) -lprotobuf-c -lm
# Of file formats that only the command reads.
CLI_LIBS     := -lbrotlidec
DAEMON_LIBS  := -luring -lsystemd
# What the device code on the CPU needs beside $(LIBS).
SIMT_LIBS    := -lboost_context -lstdc++

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
MAKEFLAGS += --no-print-directory
endif

# A make of its own, for what may have to be installed first and for other variants: on all cores,
# unless this make was told how many to take.
parallel = $(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

# The recipe of every program: $(call program,LIBRARIES[,LINKER]) links the objects and archives that
# its rule names, objects first.  $(CXX) is the linker of what has C++ or CUDA's runtime in it.
define program
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(or $(2),$(CC)) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a %.so.$(ABI),$^) $(1)
endef

.PHONY: all deps demo clean help FORCE
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
# Keep what implicit rules made on the way: every object serves the next build.
.SECONDARY:

# ---- what is built, of sources that are found by name ---------------------------------------

obj = $(patsubst %,$(BUILD)/obj/%.o,$(1))

LIB_A       := $(BUILD)/libwharf.a
LIB_SO      := $(BUILD)/libwharf.so.$(ABI)
CLI         := $(BUILD)/wharf
DAEMON      := $(BUILD)/wharfd
# All of the daemon but its main file, for its tests.
DAEMON_A    := $(BUILD)/libwharfd.a
# The device code on the CPU; under the thread sanitizer nothing uses it.
SIMT_A      := $(BUILD)/libsimt.a
simt_a      := $(if $(filter tsan,$(VARIANT)),,$(SIMT_A))
# The process that owns the GPU; and the same one with the device's code on the CPU, for machines
# without a GPU and for tests.
GPU_WORKER  := $(BUILD)/wharfd-gpu
SIMT_WORKER := $(BUILD)/wharfd-simt

all: $(LIB_A) $(LIB_SO) $(CLI) $(DAEMON) $(SIMT_WORKER) ## libraries, command and daemon
	@echo 'wharf $(VERSION), $(VARIANT): $(gpu_note)'
no_gpu   := CPU-only build: there is no nvcc on PATH or in /usr/local/cuda
gpu_note := $(if $(NVCC),`make gpu-worker` builds what GPUs take with $(NVCC),$(no_gpu))

# Packages and the demo want it where there is nvcc, and do without.
.PHONY: gpu-worker
gpu-worker: $(if $(NVCC),$(GPU_WORKER)) ## the worker for GPUs, with nvcc, which takes minutes; before `make install`
	$(if $(NVCC),,@echo '$(no_gpu)')

proto_src    := $(wildcard proto/*.c)
proto_gen    := $(patsubst %.proto,$(BUILD)/gen/%.pb-c,$(wildcard proto/*.proto encoders/*/*.proto))
encoders_src := $(filter-out $(full_encoders),$(wildcard encoders/*.c encoders/*/*.c))
client_src   := $(filter-out clientlib/example%,$(wildcard clientlib/*.c))
core_obj     := $(call obj,$(proto_src) $(encoders_src)) $(patsubst $(BUILD)/gen/%,$(BUILD)/obj/%.c.o,$(proto_gen))
client_obj   := $(call obj,$(client_src))
# File formats that only the command reads, which libwharf.so is without.
file_obj     := $(filter $(BUILD)/obj/encoders/orc/%,$(core_obj))
# For programs that encode: these objects come first, so that the archive's plain ones stay in it.
ENCODING_LIB := $(call obj,$(full_encoders)) $(LIB_A)

# Subordinate uids of directory services, where libsubid's header is there (SUBID= to do without).
SUBID        ?= $(wildcard /usr/include/shadow/subid.h)
daemon_src   := $(filter-out daemon/wharfd.c daemon/disposable/owner_subid$(if $(SUBID),_none).c, \
    $(filter-out daemon/worker/%,$(wildcard daemon/*.c daemon/*/*.c))) kernels/work_parts.c
worker_obj   := $(call obj,$(filter-out daemon/worker/engine_%.c,$(wildcard daemon/worker/*.c)))

# Device code on the CPU, and what engines for both have in common; what is only for the GPU has
# the ending .cu.
simt_src     := $(wildcard kernels/simt/*.cc kernels/*.c)
gpu_obj      := $(call obj,$(wildcard kernels/*.cu))

$(LIB_A): $(core_obj) $(client_obj)
$(DAEMON_A): $(call obj,$(daemon_src))
$(SIMT_A): $(call obj,$(simt_src))

# An archive's members are what its rule names.
$(BUILD)/%.a:
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(LIB_SO): $(filter-out $(file_obj),$(core_obj)) $(client_obj) clientlib/libwharf.map
	$(say) LD $@
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,libwharf.so.$(ABI) -Wl,--version-script=clientlib/libwharf.map \
	    -Wl,--no-undefined -o $@ $(filter %.o,$^) $(LIBRARY_LIBS)
	$(Q)ln -sf libwharf.so.$(ABI) $(BUILD)/libwharf.so

$(CLI): $(call obj,$(wildcard clientlib/cli/*.c)) $(ENCODING_LIB)
	$(call program,$(LIBS) $(CLI_LIBS))

$(DAEMON): $(call obj,daemon/wharfd.c) $(DAEMON_A) $(ENCODING_LIB)
	$(call program,$(LIBS) $(DAEMON_LIBS))

ifeq ($(VARIANT),tsan)
# Coroutines are nothing for the thread sanitizer: the core's threads are tested with the release's.
$(SIMT_WORKER): FORCE
	@mkdir -p $(@D)
	+$(Q)$(MAKE) VARIANT=release build/release/wharfd-simt
	$(Q)ln -f build/release/wharfd-simt $@
else
$(SIMT_WORKER): $(worker_obj) $(call obj,daemon/worker/engine_simt.c) $(DAEMON_A) $(SIMT_A) $(LIB_A)
	$(call program,$(LIBRARY_LIBS) $(SIMT_LIBS))
endif

$(GPU_WORKER): $(worker_obj) $(call obj,daemon/worker/engine_cuda.c) $(gpu_obj) $(DAEMON_A) $(SIMT_A) $(LIB_A)
	$(call program,$(LIBRARY_LIBS) $(SIMT_LIBS) $(CUDA_LIBS),$(CXX))

# ---- objects -------------------------------------------------------------------------------

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
$(BUILD)/obj/%.c.o: %.c $(BUILD)/flags | $(proto_gen:%=%.h)
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -MMD -MP -c -o $@ $<

# They have tables on the stack: on one that is too small they are to meet the page behind that, not to
# step over it into other memory.
$(patsubst %,$(BUILD)/obj/encoders/%.c.o,rans/rans_decode zstd/zstd_decode zstd/zstd_reference blosc/blosc_decode blosc/blosc_reference): \
    private ALL_CFLAGS += -fstack-clash-protection

# Device code comes in so many forms that what a debugger may know of each is a quarter of the time.
# Switches between lanes are what tests of it do most.
$(BUILD)/obj/kernels/simt/%.cc.o: private ALL_CXXFLAGS += -g1
$(BUILD)/obj/kernels/simt/simt.cc.o: private ALL_CXXFLAGS += $(if $(filter asan,$(VARIANT)),-O2 -fno-sanitize=undefined)

device_codecs_h := $(BUILD)/gen/kernels/device_codecs.h
$(BUILD)/obj/%.cc.o: %.cc $(BUILD)/flags | $(device_codecs_h)
	$(say) CXX $<
	@mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -fPIC -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.cu.o: %.cu $(BUILD)/flags | $(device_codecs_h)
	$(say) NVCC $<
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# ---- generated code, in $(BUILD)/gen ---------------------------------------------------------

# Control messages: C from proto/*.proto.
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: %.proto | $(BUILD)/deps
	$(say) PROTO $<
	@mkdir -p $(@D)
	$(Q)$(PROTOC_C) --c_out=$(BUILD)/gen $<

# The generated code asserts on its caller's types, and a library must not end the program.
$(BUILD)/obj/%.pb-c.c.o: $(BUILD)/gen/%.pb-c.c $(BUILD)/flags
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DNDEBUG -fPIC -MMD -MP -c -o $@ $<

# Device decoders: for each form of them, which FORM:LIST names, the codecs CODEC whose folder has a
# CODEC_FORM.cuh, as includes and as WHARF_LIST_CODEC_LIST(X).
device_forms := decode:DEVICE quick:QUICK serial:SERIAL block:BLOCK crew:CREW indexed:INDEXED part:PART
codecs_with   = $(foreach c,$(notdir $(wildcard kernels/*)),$(if $(wildcard kernels/$(c)/$(c)_$(1).cuh),$(c)))
$(device_codecs_h): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(foreach f,$(device_forms),'$(f) $(call codecs_with,$(firstword $(subst :, ,$(f))))') | awk '\
	    BEGIN { print "/* Made by the build from the folders of kernels/ that have a decoder. */" } \
	    { split($$1, form, ":"); \
	      for (i = 2; i <= NF; i++) printf "#include \"kernels/%s/%s_%s.cuh\"\n", $$i, $$i, form[1]; \
	      printf "#define WHARF_%s_CODEC_LIST(X) \\\n", form[2]; \
	      for (i = 2; i <= NF; i++) printf "    X(%s, %s) \\\n", toupper($$i), $$i; \
	      print "" }' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

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
    in_name && $$1 == ".Nm" { if (n++) print "link:" page ":$(mandir)/man3/" $$2 ".3"; else page = $$2 ".3" }' $(1))
# The pages of a folder, and those links.
pages_of = $(foreach page,$(wildcard $(1)/*.3),644:$(page):$(mandir)/man3/$(notdir $(page))) \
    $(call page_links,$(wildcard $(1)/*.3))

# The one list, of which uninstall is made too: MODE:SOURCE:TARGET, or link:WHERE-TO:TARGET, or
# conf:SOURCE:TARGET for a file that belongs to its administrator as soon as it was changed.  Further
# products add their own files in their .mk, and to install_folders what is theirs alone.
install_list = \
    755:$(CLI):$(bindir)/wharf \
    644:clientlib/cli/wharf.1:$(mandir)/man1/wharf.1 \
    $(call pages_of,clientlib) \
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
    644:daemon/processes.svg:$(docdir)/processes.svg \
    644:daemon/job-life.svg:$(docdir)/job-life.svg \
    644:daemon/SECURITY.md:$(docdir)/SECURITY.md \
    644:systemd/wharf.rules.yml:$(docdir)/wharf.rules.yml \
    644:systemd/wharf.dashboard.json:$(docdir)/wharf.dashboard.json \
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
	    "$(DESTDIR)$(docdir)/formats" "$(DESTDIR)$(docdir)" $(install_folders:%="$(DESTDIR)%"); do \
	    [ ! -d "$$folder" ] || rmdir --ignore-fail-on-non-empty "$$folder"; \
	done
	$(Q)$(refresh_linker)

# ---- everything else -----------------------------------------------------------------------

demo: ## install what is missing, build, pack real files and unpack them by a private daemon
	$(Q).ci/install-deps build
	+$(Q)$(parallel) all $(if $(wildcard /dev/nvidiactl /dev/dxg),gpu-worker) $(BUILD)/bench/columns
	$(Q)tests/bench/demo.py $(BUILD)

deps: ## install the Debian packages that building and testing need
	$(Q).ci/install-deps build test

clean: ## remove everything that was built
	$(Q)rm -rf build

# Packages are built of a tree without tests.
include $(wildcard tests/tests.mk tests/gpu/gpu.mk tests/bench/bench.mk systemd/deb.mk clientlib/*/*.mk)

help: ## this list
	@awk -F'## ' '/^[a-z-]+:.*## / {split($$1, t, ":"); printf "  %-17s %s\n", t[1], $$2}' \
	    $(filter Makefile %.mk,$(MAKEFILE_LIST))

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
