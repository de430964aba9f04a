/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gathers what a verdict needs to know (policy/verdict.h): leases, the address's place, the kernel's route to it, the
 * time. Each path asks here before a connection or a datagram flow may go upstream, and again when rules change. */
#ifndef POSTERN_GATEWAY_JUDGE_H
#define POSTERN_GATEWAY_JUDGE_H

#include "gateway/path/gateway.h"
#include "policy/verdict.h"

/* What the guest said, where the protocol says a name. */
struct judge_claim {
	enum verdict_naming naming; /* VERDICT_SAID or VERDICT_SILENT */
	enum name_source source;    /* where it is, or had to be, said: NAME_SOURCE_SNI, NAME_SOURCE_HOST */
	const struct name *name;    /* VERDICT_SAID: canonical */
	bool ech;                   /* the hello carries the encrypted-client-hello extension */
};

/* May the sandbox connect, or send its first datagram, to this address? claim NULL: the protocol says no name, or says
 * it late. */
struct judgement judge_attempt(
    struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port, const struct judge_claim *claim);

/* Does the sandbox's present policy still allow what was let through with this name? Neither leases nor routes are
 * asked. name: as in the record; source: its proof, NAME_SOURCE_CIDR for none. */
bool judge_still_allows(struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port,
    const struct name *name, enum name_source source, bool ech);

/* Why a place is not known: static text, or NULL when the database does not say. */
const char *judge_place_detail(const struct sandbox *sandbox, enum reason reason);

#endif
