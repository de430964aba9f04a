/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks of this machine: each reports ok, warn or fail, and a remedy. */
#ifndef POSTERN_CLI_DOCTOR_H
#define POSTERN_CLI_DOCTOR_H

#include "policy/names/addr.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most that posternd uses. */
#define DOCTOR_RESOLVERS_MAX 4

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_LEVEL_MAX };

struct doctor {
	json_t *checks; /* [{"level","check","text","remedy"}] */
	size_t failed;
	bool daemon_answers;
	json_t *resolvers; /* that the daemon uses; NULL: none answers */
};

/* remedy may be NULL. */
void doctor_check_add(struct doctor *doctor, enum doctor_level level, const char *check, const char *remedy,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Run a program and collect at most size - 1 bytes of its stdout and stderr. as_root: unless this process is root, in a
 * user namespace of its own, as root there. Returns its exit status; 127: could not be run; 126: no such namespace. */
int doctor_capture(const char *const *argv, bool as_root, char *ret_output, size_t size);

/* Output of `nft -j list ruleset`: foreign base chains that drop what the gateway sends. Returns how many it reported.
 */
size_t doctor_check_ruleset(struct doctor *doctor, const char *json_text, size_t len);

/* Does a resolver answer a question within timeout_ms? */
bool doctor_resolvers_answers(const struct addr *addr, uint16_t port, int timeout_ms);

void doctor_check_kernel(struct doctor *doctor);
void doctor_check_tun(struct doctor *doctor);
void doctor_check_userns(struct doctor *doctor);
void doctor_check_users(struct doctor *doctor);
void doctor_check_daemon(struct doctor *doctor);
void doctor_check_firewall(struct doctor *doctor);
void doctor_resolvers_check(struct doctor *doctor);

#endif
