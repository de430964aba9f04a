# SPDX-License-Identifier: GPL-3.0-or-later
# postern: `make demo` shows it at work, `make test` tests it, `make` builds it, `make install` installs it.
#
# SANITIZE=1 builds with ASan and UBSan into build-sanitize/ (make test SANITIZE=1 runs the same tests on it).

VERSION := 0.1.0
SANITIZE ?=
BUILD ?= $(if $(SANITIZE),build-sanitize,build)
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
HARDEN := -fstack-protector-strong -fPIE -fno-strict-aliasing $(if $(SANITIZE),,-D_FORTIFY_SOURCE=2)
LINK_HARDEN := -pie -Wl,-z,relro,-z,now
SAN := $(if $(SANITIZE),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DPOSTERN_SANITIZE)
comma := ,

PKGS_policy := yaml-0.1 libidn2 libcrypto
PKGS_audit := sqlite3 jansson
PKGS_tap := libnftnl libmnl
PKGS_gateway := libcares ldns libssl libcrypto libmicrohttpd jansson libseccomp libcap-ng libsystemd
PKGS_cli := libcurl jansson
PKGS := $(sort $(PKGS_policy) $(PKGS_audit) $(PKGS_tap) $(PKGS_gateway) $(PKGS_cli))

ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -I$(BUILD)/gen $(WARN) $(HARDEN) $(SAN) \
	$(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null) -DPOSTERN_VERSION='"$(VERSION)"' $(CFLAGS)
ALL_LDFLAGS := $(LINK_HARDEN) $(SAN) $(LDFLAGS)
libs = $(shell $(PKG_CONFIG) --libs $(sort $(foreach f,$(1),$(PKGS_$(f)))) 2>/dev/null) -lpthread

FOLDERS := base policy tap audit gateway cli
# mains and build-time generators are not part of a folder's archive
MAINS := gateway/posternd.c cli/postern.c
GENERATORS := policy/never_gen.c
$(foreach f,$(FOLDERS),$(eval SRC_$(f) := $(filter-out $(MAINS) $(GENERATORS),$(wildcard $(f)/*.c))))
$(foreach f,$(FOLDERS),$(eval OBJ_$(f) := $(SRC_$(f):%.c=$(BUILD)/%.o)))
lib = $(BUILD)/lib$(1).a

# What a unit test of a folder may link, upper folders first
DEPS_base := base
DEPS_policy := policy base
DEPS_audit := audit policy base
DEPS_tap := tap policy base
DEPS_gateway := gateway tap audit policy base
DEPS_cli := cli audit policy base

all: $(BUILD)/posternd $(BUILD)/postern

$(BUILD)/posternd: $(BUILD)/gateway/posternd.o $(foreach f,$(DEPS_gateway),$(call lib,$(f)))
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call libs,gateway tap audit policy)
$(BUILD)/postern: $(BUILD)/cli/postern.o $(foreach f,$(DEPS_cli),$(call lib,$(f)))
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call libs,cli audit policy)

define folder_rules
$(call lib,$(1)): $$(OBJ_$(1))
	rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder_rules,$(f))))

$(BUILD)/%.o: %.c
	@mkdir -p $(dir $@)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The never lists are compiled in from their CSV files.
$(BUILD)/never_gen: policy/never_gen.c
	@mkdir -p $(BUILD)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Wextra -o $@ $<
$(BUILD)/gen/never_list.inc: $(BUILD)/never_gen policy/prefixes.csv policy/names.csv
	@mkdir -p $(BUILD)/gen
	$(BUILD)/never_gen policy/prefixes.csv policy/names.csv > $@.tmp && mv $@.tmp $@
$(OBJ_policy): $(BUILD)/gen/never_list.inc

# Unit tests: tests/unit/FOLDER_WHAT_test.c, cmocka; kernel probes: tests/probe/*_probe.c.
UNIT_SRC := $(wildcard tests/unit/*_test.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
define unit_rule
$(BUILD)/tests/unit/$(notdir $(basename $(1))): $(BUILD)/tests/unit/$(notdir $(basename $(1))).o $(foreach f,$(DEPS_$(firstword $(subst _, ,$(notdir $(1))))),$(call lib,$(f)))
	$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(call libs,$(DEPS_$(firstword $(subst _, ,$(notdir $(1)))))) -lcmocka
endef
$(foreach t,$(UNIT_SRC),$(eval $(call unit_rule,$(t))))

PROBE_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/probe/*_probe.c))
$(BUILD)/tests/probe/%: $(BUILD)/tests/probe/%.o $(foreach f,$(DEPS_tap),$(call lib,$(f)))
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call libs,tap policy)

# Small guest-side and origin-side programs of the lab: tests/lab/*.c, each its own program.
LAB_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/lab/*.c))
$(BUILD)/tests/lab/%: $(BUILD)/tests/lab/%.o
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -lssl -lcrypto -lpthread

unit: $(UNIT_BIN)
probes: $(PROBE_BIN)
lab-programs: $(LAB_BIN)

clean:
	rm -rf build build-*

.PHONY: all unit probes lab-programs clean
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
