# SPDX-License-Identifier: GPL-3.0-or-later
# postern: `make demo` shows it at work, `make test` tests it, `make` builds it, `make install` installs it.
#
# On Debian 12; `make deps` installs what is missing of tests/packages (demo and test do that first).
# SANITIZE=1 builds with ASan and UBSan into build-sanitize/ (make test SANITIZE=1 runs the same tests on it).
# FUZZ=1 CC=clang builds for libFuzzer into build-fuzz/ (make fuzz does that by itself).
# make lint checks the sources: format, who includes whom, names, notes, comments (make measure: the figures).
# make test ONLY=dns runs only the test files with "dns" in their path; SUITES="unit e2e" only those suites.
# make test-long runs what takes minutes: leases that expire, connections that idle, a storage fault at every call,
# a minute of each fuzzer.

VERSION := 0.1.0
# Of the manual pages; the day of the version.
DATE := 2026-11-30
SANITIZE ?=
FUZZ ?=
BUILD ?= $(if $(FUZZ),build-fuzz,$(if $(SANITIZE),build-sanitize,build))
PREFIX ?= /usr
DESTDIR ?=
CC ?= cc
PKG_CONFIG ?= pkg-config

WARN := -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wvla -Wundef -Wcast-qual -Wmissing-prototypes \
	-Wstrict-prototypes -Wswitch-enum
ifdef CI
WARN += -Werror
endif
CFLAGS ?= -O2 -g
HARDEN := -fstack-protector-strong -fPIE -fno-strict-aliasing $(if $(SANITIZE)$(FUZZ),,-D_FORTIFY_SOURCE=2)
comma := ,
LINK_HARDEN := -pie -Wl,-z,relro,-z,now
SAN := $(if $(SANITIZE),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DPOSTERN_SANITIZE)
ifdef FUZZ
SAN := -fsanitize=address$(comma)undefined$(comma)fuzzer-no-link -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-DPOSTERN_SANITIZE
endif

PKGS_base :=
PKGS_policy := yaml-0.1 libidn2 libpsl libcrypto
PKGS_audit := sqlite3 jansson $(PKGS_policy)
PKGS_tap := libnftnl libmnl $(PKGS_policy)
PKGS_gateway := libcares ldns libssl libcrypto libmicrohttpd jansson libseccomp libcap-ng libsystemd libmaxminddb $(PKGS_audit) $(PKGS_tap)
PKGS_cli := libcurl jansson libcap-ng libseccomp $(PKGS_audit)
PKGS := $(sort $(PKGS_policy) $(PKGS_audit) $(PKGS_tap) $(PKGS_gateway) $(PKGS_cli))

ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -I$(BUILD)/gen $(WARN) $(HARDEN) $(SAN) \
	$(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null) -DPOSTERN_VERSION='"$(VERSION)"' $(CFLAGS)
ALL_LDFLAGS := $(LINK_HARDEN) $(SAN) $(LDFLAGS)
# LIBS_FOLDER: what a program of the folder links besides archives
$(foreach f,base policy audit tap gateway cli,$(eval LIBS_$(f) := $(shell $(PKG_CONFIG) --libs $(sort $(PKGS_$(f))) 2>/dev/null) -lpthread -lm))
libs = $(LIBS_$(1))

# One short line a step; V=1 shows the commands themselves.
say = $(if $(V),,@printf '  %-4s %s\n' $(1) '$@';)

# Rooms: a folder with all below it is one archive, and each role of posternd has a room of its own, so that the linker
# keeps what the folders promise: what a room may use stands behind it, upper rooms first.
GATEWAY := gateway/keeper gateway/control gateway/auditor gateway/path
ROOMS := base policy tap audit gateway/shared $(GATEWAY) cli
# mains and build-time generators are not part of a room's archive
MAINS := gateway/posternd.c cli/postern.c
GENERATORS := policy/names/never_gen.c
$(foreach r,$(ROOMS),$(eval SRC_$(r) := $(filter-out $(MAINS) $(GENERATORS),$(wildcard $(r)/*.c $(r)/*/*.c))))
$(foreach r,$(ROOMS),$(eval OBJ_$(r) := $(SRC_$(r):%.c=$(BUILD)/%.o)))
lib = $(BUILD)/lib$(subst /,_,$(1)).a
libs_of = $(foreach r,$(1),$(call lib,$(r)))

DEPS_base := base
DEPS_policy := policy base
DEPS_audit := audit policy base
DEPS_tap := tap policy base
DEPS_gateway := $(GATEWAY) gateway/shared tap audit policy base
DEPS_cli := cli audit policy base

all: $(BUILD)/posternd $(BUILD)/postern

$(BUILD)/posternd: $(BUILD)/gateway/posternd.o $(call libs_of,$(DEPS_gateway))
	$(call say,LINK) $(CC) $(ALL_LDFLAGS) -o $@ $^ $(call libs,gateway)
$(BUILD)/postern: $(BUILD)/cli/postern.o $(call libs_of,$(DEPS_cli))
	$(call say,LINK) $(CC) $(ALL_LDFLAGS) -o $@ $^ $(call libs,cli)

define room_rule
$(call lib,$(1)): $$(OBJ_$(1))
	$$(call say,AR) rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_rule,$(r))))

$(BUILD)/%.o: %.c
	@mkdir -p $(dir $@)
	$(call say,CC) $(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The never lists, hosts of many parties and names worth a note are compiled in from their CSV files.
$(BUILD)/never_gen: policy/names/never_gen.c
	@mkdir -p $(BUILD)
	$(call say,LINK) $(CC) -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Wextra -o $@ $<
LISTS := policy/names/prefixes.csv policy/names/names.csv policy/names/shared_hosts.csv policy/names/noted_names.csv
$(BUILD)/gen/never_list.inc: $(BUILD)/never_gen $(LISTS)
	@mkdir -p $(BUILD)/gen
	$(BUILD)/never_gen $(LISTS) > $@.tmp && mv $@.tmp $@
$(OBJ_policy): $(BUILD)/gen/never_list.inc

# What a role may ask of the kernel is noted beside the code that asks (gateway/shared/confine.awk says how).
NOTES_shared := $(SRC_base) $(SRC_policy) $(SRC_gateway/shared)
NOTES_gateway := $(SRC_gateway/path)
NOTES_auditor := $(SRC_gateway/auditor) $(SRC_audit)
NOTES_control := $(SRC_gateway/control)
define syscalls_rule
$(BUILD)/gen/syscalls_$(1).inc: gateway/shared/confine.awk $(NOTES_shared) $(NOTES_$(1))
	@mkdir -p $(BUILD)/gen
	$$(call say,GEN) awk -v role=$(1) -f $$^ >$$@.tmp && mv $$@.tmp $$@
$(BUILD)/gateway/shared/confine.o: $(BUILD)/gen/syscalls_$(1).inc
endef
$(foreach role,gateway auditor control,$(eval $(call syscalls_rule,$(role))))

# What a program of the tests links is told by the first word of its name: tests/fuzz/audit_row_fuzz.c is the log's.
# program_rule SOURCE FLAGS
folder_of = $(firstword $(subst _, ,$(notdir $(1))))
define program_rule
$(BUILD)/$(basename $(1)): $(BUILD)/$(basename $(1)).o $(call libs_of,$(DEPS_$(call folder_of,$(1))))
	$$(call say,LINK) $$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(call libs,$(call folder_of,$(1))) $(2)
endef

# Unit tests: tests/unit/FOLDER/FOLDER_WHAT_test.c, cmocka; kernel probes: tests/probe/*_probe.c.
UNIT_SRC := $(wildcard tests/unit/*/*_test.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
$(foreach t,$(UNIT_SRC),$(eval $(call program_rule,$(t),-lcmocka)))

PROBE_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/probe/*_probe.c))
$(BUILD)/tests/probe/%: $(BUILD)/tests/probe/%.o $(call libs_of,$(DEPS_tap))
	$(call say,LINK) $(CC) $(ALL_LDFLAGS) -o $@ $^ $(call libs,tap)

# Small guest-side and origin-side programs of the lab: tests/lab/*.c, each its own program.
LAB_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/lab/*.c))
$(BUILD)/tests/lab/%: $(BUILD)/tests/lab/%.o
	$(call say,LINK) $(CC) $(ALL_LDFLAGS) -o $@ $^ -lssl -lcrypto -lpthread

# Fuzzers: tests/fuzz/FOLDER_WHAT_fuzz.c, libFuzzer; only a build with FUZZ=1 makes them.
FUZZ_SRC := $(wildcard tests/fuzz/*_fuzz.c)
$(foreach t,$(FUZZ_SRC),$(eval $(call program_rule,$(t),-fsanitize=fuzzer)))

# Benchmarks: tests/bench/FOLDER[_WHAT]_bench.c, and tests/bench/fleet, which needs root; make bench runs them, the tests
# do not.
BENCH_SRC := $(wildcard tests/bench/*_bench.c)
BENCH_BIN := $(BENCH_SRC:%.c=$(BUILD)/%)
$(foreach t,$(BENCH_SRC),$(eval $(call program_rule,$(t))))

unit: $(UNIT_BIN)
probes: $(PROBE_BIN)
lab-programs: $(LAB_BIN)
fuzz-programs: $(FUZZ_SRC:%.c=$(BUILD)/%)

# As many jobs as processors, unless the caller said how many.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
SUB = $(MAKE) --no-print-directory $(JOBS)

deps:
	@tests/deps

# The guest that the demonstration and the tests boot; one for all build folders.
VM_DIR ?= build/vm
vm-image:
	@tests/lab/vm/image $(VM_DIR)

demo: deps
	@$(SUB) all vm-image
	@BUILD=$(BUILD) VM_DIR=$(VM_DIR) tests/demo/run

SUITES ?= unit probe fuzz e2e
test: deps
	@$(SUB) all unit probes lab-programs man
ifeq ($(SANITIZE),)
	@$(if $(filter fuzz,$(SUITES)),$(MAKE) fuzz-build)
endif
	@$(SUB) vm-image || echo "# no guest image: the tests that boot one are skipped"
	@BUILD=$(BUILD) VM_DIR=$(VM_DIR) ONLY="$(ONLY)" tests/run $(SUITES)

# Checks of the sources (tests/lint/lint.py), and that each check finds a violation planted for it.
lint: deps
	@$(SUB) all
	@tests/lint/lint.py --build $(BUILD)
	@tests/lint/planted.py --build $(BUILD)
# The figures behind them.
measure:
	@$(SUB) all
	@tests/lint/lint.py --build $(BUILD) --measure

# What takes many minutes because it waits for them to pass, or goes through everything.
test-long: deps
	@$(SUB) all unit lab-programs
	@BUILD=$(BUILD) VM_DIR=$(VM_DIR) ONLY="$(ONLY)" tests/run unit-long e2e-long
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=60

# The fuzzers' build needs clang's runtime library; without it there are none, and the tests say that they skip them.
fuzz-build:
	@if echo 'int main(void){return 0;}' | clang -x c -fsanitize=address$(comma)fuzzer-no-link -o /dev/null - 2>/dev/null; \
	then $(SUB) BUILD=build-fuzz FUZZ=1 CC=clang SANITIZE= CI= fuzz-programs; \
	else echo "# no fuzzers: clang with libclang-rt is not installed"; fi

FUZZ_SECONDS ?= 10
fuzz: fuzz-build
	@status=0; for program in $(FUZZ_SRC:%.c=build-fuzz/%); do \
		FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $$program || status=1; done; exit $$status
fuzz-replay: fuzz-build
	@tests/run fuzz

$(BUILD)/tests/bench/load: tests/bench/load.c
	@mkdir -p $(dir $@)
	$(call say,LINK) $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $<
# The data path beside another version's: make bench-path BASELINE=../old/build, as root.
bench-path: all $(BUILD)/tests/bench/load
	@BUILD=$(BUILD) tests/lab/enter tests/bench/path $(BASELINE)

bench: $(BENCH_BIN) all
	@status=0; for program in $(BENCH_BIN) "tests/lab/enter tests/bench/fleet"; do \
		echo "# $$program"; BUILD=$(BUILD) $$program || status=1; done; exit $$status

# Manual pages: man/NAME.SECTION.scd; version and date come from above.
MAN := $(patsubst man/%.scd,$(BUILD)/man/%,$(wildcard man/*.scd))
$(BUILD)/man/%: man/%.scd Makefile
	@mkdir -p $(BUILD)/man
	$(call say,MAN) sed '1s/$$/ "postern $(VERSION)"/' $< | SOURCE_DATE_EPOCH=$$(date -u -d $(DATE) +%s) scdoc > $@.tmp && mv $@.tmp $@
man: $(MAN)

# Where things go.
SBINDIR := $(PREFIX)/sbin
BINDIR := $(PREFIX)/bin
MANDIR := $(PREFIX)/share/man
UNITDIR := $(PREFIX)/lib/systemd/system
SYSUSERSDIR := $(PREFIX)/lib/sysusers.d
SHAREDIR := $(PREFIX)/share/postern
EXAMPLEDIR := $(PREFIX)/share/doc/postern/examples
install: all man
	install -D -m 0755 $(BUILD)/posternd $(DESTDIR)$(SBINDIR)/posternd
	install -D -m 0755 $(BUILD)/postern $(DESTDIR)$(BINDIR)/postern
	for page in $(MAN); do install -D -m 0644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; done
	for unit in $(wildcard configs/*.service configs/*.socket); do \
		install -D -m 0644 $$unit $(DESTDIR)$(UNITDIR)/$${unit##*/} || exit 1; done
	install -D -m 0644 configs/sysusers-postern.conf $(DESTDIR)$(SYSUSERSDIR)/postern.conf
	for preset in $(wildcard configs/presets/*); do \
		install -D -m 0644 $$preset $(DESTDIR)$(SHAREDIR)/presets/$${preset##*/} || exit 1; done
	for file in $(wildcard configs/*.json configs/*.yaml); do \
		install -D -m 0644 $$file $(DESTDIR)$(SHAREDIR)/$${file##*/} || exit 1; done
	for example in $(wildcard configs/policies/*.yaml); do \
		install -D -m 0644 $$example $(DESTDIR)$(EXAMPLEDIR)/$${example##*/} || exit 1; done
	install -d -m 0755 $(DESTDIR)/etc/postern
uninstall:
	rm -f $(DESTDIR)$(SBINDIR)/posternd $(DESTDIR)$(BINDIR)/postern $(DESTDIR)$(SYSUSERSDIR)/postern.conf
	for page in $(notdir $(MAN)); do rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$$page; done
	for unit in $(notdir $(wildcard configs/*.service configs/*.socket)); do rm -f $(DESTDIR)$(UNITDIR)/$$unit; done
	rm -rf $(DESTDIR)$(SHAREDIR) $(DESTDIR)$(EXAMPLEDIR)
	@echo "left in place: $(DESTDIR)/etc/postern, $(DESTDIR)/var/lib/postern and the system users"

clean:
	rm -rf build build-*

.PHONY: all unit probes lab-programs fuzz-programs bench bench-path deps vm-image demo test test-long lint measure fuzz-build fuzz fuzz-replay man install \
	uninstall clean
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
