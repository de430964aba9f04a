/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Community ID of a flow (github.com/corelight/community-id-spec, version 1, seed 0): the same text for the same flow
 * in Zeek, Suricata, ECS and here, whichever end is called source. */
#ifndef POSTERN_AUDIT_COMMUNITY_ID_H
#define POSTERN_AUDIT_COMMUNITY_ID_H

#include "policy/names/addr.h"

#include <stdbool.h>
#include <stdint.h>

/* "1:", 28 characters of base64 and the NUL. */
#define COMMUNITY_ID_MAX 32

/* For TCP, UDP and SCTP with their ports, for other protocols without; false (and "") for ICMP, whose type and code
 * would be needed, and when an address is missing or their families differ. */
bool community_id(const struct addr *src, uint16_t sport, const struct addr *dst, uint16_t dport, uint8_t proto,
    char ret_text[COMMUNITY_ID_MAX]);

#endif
