/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/reason.h"

#include <assert.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct reason_row {
	const char *text;
	const char *sentence;
};

static const struct reason_row reasons[] = {
    [REASON_ALLOWED] = {"allowed", "a rule allows this"},
    [REASON_NO_RULE] = {"no_rule", "no rule allows this"},
    [REASON_RULE_DENY] = {"rule_deny", "a deny rule of the policy matches"},
    [REASON_NEVER_ADDRESS] = {"never_address", "this address can never be reached from a sandbox"},
    [REASON_NEVER_NAME] = {"never_name", "this name can never be reached from a sandbox"},
    [REASON_NOT_LEASED] = {"not_leased", "this sandbox has not resolved an allowed name to this address"},
    [REASON_DNS_DENIED] = {"dns_denied", "this DNS message is not in order"},
    [REASON_DNS_REBIND] = {"dns_rebind", "the name's answer holds an address that can never be reached"},
    [REASON_DNS_TYPE] = {"dns_type", "this DNS record type is not served"},
    [REASON_SNI_MISSING] = {"sni_missing", "the TLS hello names no server"},
    [REASON_SNI_MISMATCH] = {"sni_mismatch", "the TLS server name was not resolved to this address"},
    [REASON_ECH] = {"ech", "the policy denies encrypted TLS hellos"},
    [REASON_TLS_MALFORMED] = {"tls_malformed", "the TLS hello is malformed"},
    [REASON_HOST_MISMATCH] = {"host_mismatch", "the HTTP host was not resolved to this address"},
    [REASON_HTTP_MALFORMED] = {"http_malformed", "the HTTP request is malformed or ambiguous"},
    [REASON_NOT_TLS] = {"not_tls", "this port carries TLS only"},
    [REASON_NOT_HTTP] = {"not_http", "this port carries HTTP only"},
    [REASON_UDP_DENIED] = {"udp_denied", "no rule allows UDP on this port"},
    [REASON_PROTO_DENIED] = {"proto_denied", "this protocol is never carried"},
    [REASON_SPOOFED_SOURCE] = {"spoofed_source", "the source address is not the sandbox's"},
    [REASON_LIMIT_CONNECTIONS] = {"limit_connections", "the limit of connections is reached"},
    [REASON_LIMIT_UPLOAD] = {"limit_upload", "the limit of bytes sent is reached"},
    [REASON_LIMIT_RATE] = {"limit_rate", "the rate limit is reached"},
    [REASON_EXPIRED] = {"expired", "the rule that allowed this has expired"},
    [REASON_REVOKED] = {"revoked", "the rule that allowed this was taken back"},
    [REASON_UPSTREAM_ERROR] = {"upstream_error", "the far side could not be reached"},
    [REASON_AUDIT_UNAVAILABLE] = {"audit_unavailable", "the audit log cannot be written"},
    [REASON_INTERNAL_ERROR] = {"internal_error", "the gateway failed"},
    [REASON_LIMIT_DOWNLOAD] = {"limit_download", "the limit of bytes received is reached"},
    [REASON_PLACE_UNKNOWN] = {"place_unknown",
	"the policy denies countries or networks, and this address's is not known"},
};
static_assert(COUNT(reasons) == REASON_MAX, "one row per reason");

const char *
reason_text(unsigned int reason)
{
	return reason < REASON_MAX ? reasons[reason].text : "?";
}

const char *
reason_sentence(unsigned int reason)
{
	return reason < REASON_MAX ? reasons[reason].sentence : "unknown reason";
}
