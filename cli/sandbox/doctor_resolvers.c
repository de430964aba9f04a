/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Do the resolvers answer? The daemon's, when one answers; else those of /etc/resolv.conf, which it would use. Each
 * gets a query for the root's servers, which reveals nothing. */
#include "cli/sandbox/doctor.h"

#include "policy/names/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A slower resolver delays every guest. */
#define DOCTOR_RESOLVER_MS 2000
#define DOCTOR_REMEDY "repair it, or set others with posternd --resolver ADDR[:PORT]"

bool
doctor_resolvers_answers(const struct addr *addr, uint16_t port, int timeout_ms)
{
	/* RFC 1035, 4.1: id, recursion desired, one question: ". NS IN". */
	static const uint8_t query[] = {'p', 'o', 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1};
	struct sockaddr_storage to = {0};
	socklen_t len = addr_to_sockaddr(addr, port, &to);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	uint8_t answer[512];
	bool answers;

	if (fd < 0)
		return false;
	/* Connected: only the resolver's packets arrive. */
	answers = connect(fd, (const struct sockaddr *)&to, len) == 0 &&
	    send(fd, query, sizeof(query), 0) == (ssize_t)sizeof(query) && poll(&wait, 1, timeout_ms) == 1 &&
	    recv(fd, answer, sizeof(answer), 0) > 12 && memcmp(answer, query, 2) == 0;
	close(fd);
	return answers;
}

/* "1.2.3.4", "2600::1", "1.2.3.4:5353", "[2600::1]:5353", as posternd reads and prints them. */
static bool
doctor_parse_resolver(const char *text, struct addr *ret_addr, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':'), *close = strchr(text, ']');
	size_t len = strlen(text);

	*ret_port = 53;
	if (text[0] == '[' && close != NULL) {
		if (close[1] == ':')
			*ret_port = (uint16_t)strtoul(close + 2, NULL, 10);
		return addr_parse(text + 1, (size_t)(close - text - 1), ret_addr);
	}
	if (colon != NULL && strchr(text, ':') == colon) {
		*ret_port = (uint16_t)strtoul(colon + 1, NULL, 10);
		len = (size_t)(colon - text);
	}
	return addr_parse(text, len, ret_addr);
}

/* The resolvers of /etc/resolv.conf, as posternd would use them. */
static json_t *
doctor_resolv_conf(struct doctor *doctor)
{
	FILE *file = fopen("/etc/resolv.conf", "re");
	char line[512], server[256];
	json_t *resolvers = json_array();
	struct addr addr;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, " nameserver %255s", server) != 1)
			continue;
		if (addr_parse(server, strlen(server), &addr))
			json_array_append_new(resolvers, json_string(server));
		else
			doctor_check_add(doctor, DOCTOR_WARN, "resolvers", "posternd --resolver ADDR[:PORT]",
			    "/etc/resolv.conf: '%s' is not a plain address and is not used", server);
	}
	if (file != NULL)
		fclose(file);
	if (json_array_size(resolvers) == 0)
		doctor_check_add(doctor, DOCTOR_FAIL, "resolvers", "posternd --resolver ADDR[:PORT]",
		    "/etc/resolv.conf names no resolver");
	return resolvers;
}

void
doctor_resolvers_check(struct doctor *doctor)
{
	json_t *resolvers = doctor->resolvers != NULL ? json_incref(doctor->resolvers) : doctor_resolv_conf(doctor),
	       *one;
	bool answers[DOCTOR_RESOLVERS_MAX] = {false};
	enum doctor_level silent = DOCTOR_FAIL;
	struct addr addr;
	uint16_t port;
	size_t i;

	json_array_foreach(resolvers, i, one)
	{
		if (i == DOCTOR_RESOLVERS_MAX)
			break;
		answers[i] = doctor_parse_resolver(json_string_value(one), &addr, &port) &&
		    doctor_resolvers_answers(&addr, port, DOCTOR_RESOLVER_MS);
		if (answers[i])
			silent = DOCTOR_WARN; /* the others will do */
	}
	json_array_foreach(resolvers, i, one)
	{
		if (i == DOCTOR_RESOLVERS_MAX)
			break;
		if (answers[i])
			doctor_check_add(doctor, DOCTOR_OK, "resolvers", NULL, "%s answers", json_string_value(one));
		else
			doctor_check_add(doctor, silent, "resolvers", DOCTOR_REMEDY, "%s does not answer within %d s",
			    json_string_value(one), DOCTOR_RESOLVER_MS / 1000);
	}
	json_decref(resolvers);
}
