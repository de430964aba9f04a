/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verdict on a connection: the proofs of a name and of an address, for TCP and UDP alike. */
#ifndef POSTERN_GATEWAY_JUDGE_H
#define POSTERN_GATEWAY_JUDGE_H

#include "gateway/path/gateway.h"

/* What the data paths ask before a connection or datagram flow may go upstream: never list and the host's own addresses
 * (kernel route lookup), deny rules by address, then the name proof.
 *
 * claim: the canonical name said by the guest (SNI, Host), or NULL on raw ports and where none was said. On allow,
 * ret_name is the proven name (len 0 when only an address rule allows it) and ret_source how. */
struct gateway_verdict {
	enum verdict verdict;
	enum reason reason;
	uint32_t rule; /* for snapshot_rule_text */
	enum name_source source;
	struct name name;
	const char *detail; /* static text or NULL */
	int64_t dns_us;     /* of the lease that proves the name; 0: none does */
	bool learned;       /* allowed by mode: learn alone */
};
struct gateway_verdict gateway_judge(struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port,
    const struct name *claim, enum name_source claim_source);

/* What the policy says about an address: rules by prefix, country and network (snapshot_decide_located). */
struct decision gateway_decide_addr(
    const struct sandbox *sandbox, const struct addr *addr, uint8_t proto, uint16_t port, int64_t now_us);
/* Why a place is not known: static text, or NULL when the database does not say. */
const char *gateway_place_detail(const struct sandbox *sandbox, enum reason reason);

/* Does mode: learn let through what no rule allows? TCP only: UDP needs a socket for each port, which only rules name.
 */
static inline bool
gateway_learns(const struct decision *decision, uint8_t proto)
{
	return decision->learnable && decision->reason == REASON_NO_RULE && proto == IPPROTO_TCP;
}

/* Why an allow rule no longer counts: static text, or NULL when it is past its deadline, which the reason says. */
const char *gateway_lapsed_detail(const struct sandbox *sandbox, uint32_t rule);

/* Fill country and network of the record's destination, for people who read the log: it decides nothing. */
void gateway_record_place(const struct geo *geo, struct record_flow *flow);

/* Fill the fields of a flow record that every path fills the same way (id, sandbox, time, addresses, verdict, rule). */
void gateway_flow_record(struct sandbox *sandbox, struct record *ret_record, const struct addr *src, uint16_t sport,
    const struct addr *dst, uint16_t dport, uint8_t proto, const struct gateway_verdict *verdict);

#endif
