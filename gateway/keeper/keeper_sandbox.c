/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sandboxes as the keeper holds them: the namespace with its sockets (tap/), the sealed policy, and which gateway
 * serves it. What came from control or a gateway is checked here before the kernel hears of it. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

size_t
keeper_sandbox_turn(int64_t id)
{
	return (size_t)((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

static size_t
keeper_bucket(int64_t id)
{
	return keeper_sandbox_turn(id) % KEEPER_BUCKETS;
}

struct keeper_sandbox *
keeper_sandbox_find(int64_t id)
{
	struct keeper_sandbox *sandbox = keeper.buckets[keeper_bucket(id)];

	while (sandbox != NULL && sandbox->id != id)
		sandbox = sandbox->next;
	return sandbox;
}

struct keeper_sandbox *
keeper_sandbox_find_name(const char *name)
{
	for (size_t i = 0; i < KEEPER_BUCKETS; i++)
		for (struct keeper_sandbox *sandbox = keeper.buckets[i]; sandbox != NULL; sandbox = sandbox->next)
			if (strcmp(tap_config(sandbox->tap)->name, name) == 0)
				return sandbox;
	return NULL;
}

void
keeper_sandbox_each(void (*handler)(struct keeper_sandbox *sandbox, void *context), void *context)
{
	for (size_t i = 0; i < KEEPER_BUCKETS; i++) {
		struct keeper_sandbox *next;

		for (struct keeper_sandbox *sandbox = keeper.buckets[i]; sandbox != NULL; sandbox = next) {
			next = sandbox->next;
			handler(sandbox, context);
		}
	}
}

/* Open a network namespace by path without touching what is not one: a path may name a FIFO or a device. */
static int
keeper_netns_open(const char *path, struct error *err)
{
	char self[64];
	struct statfs fs;
	int path_fd = open(path, O_PATH | O_CLOEXEC);
	int fd;

	if (path_fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ESRCH))
		return error_set(err, ERROR_NOT_FOUND, "network namespace %s is not there", path);
	if (path_fd < 0)
		return error_sys(err, errno, "network namespace %s", path);
	if (fstatfs(path_fd, &fs) < 0 || (unsigned long)fs.f_type != NSFS_MAGIC) {
		close(path_fd);
		return error_set(
		    err, ERROR_USAGE, "%s is no namespace: give a file of /run/netns or /proc/PID/ns/net", path);
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		error_sys(err, errno, "network namespace %s", path);
	} else if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
		close(fd);
		fd = error_set(err, ERROR_USAGE, "%s is a namespace, but not a network namespace", path);
	}
	close(path_fd);
	return fd;
}

/* The container's namespace, and that it is the one meant: a recycled pid or name has another inode. (CASES F-08) */
static int
keeper_netns_of(const struct msg_attach *attach, struct error *err)
{
	char path[MSG_PATH_MAX];
	struct stat st;
	int fd;

	if (attach->pid > 0)
		snprintf(path, sizeof(path), "/proc/%d/ns/net", attach->pid);
	else
		snprintf(path, sizeof(path), "%s", attach->netns_path);
	fd = keeper_netns_open(path, err);
	if (fd < 0) {
		if (attach->adopt != 0 && err->code == ERROR_USAGE)
			err->code = ERROR_NOT_FOUND; /* the file is there, what was mounted on it is not */
		return -1;
	}
	if (fstat(fd, &st) < 0 ||
	    (attach->netns_ino != 0 && (st.st_ino != attach->netns_ino || st.st_dev != attach->netns_dev))) {
		close(fd);
		return error_set(err, ERROR_NOT_FOUND, "%s is another namespace than the one attached before", path);
	}
	return fd;
}

static int
keeper_attach_config(const struct msg_attach *attach, struct tap_config *ret_config, struct error *err)
{
	struct tap_config config;

	memset(&config, 0, sizeof(config));
	if (memchr(attach->name, '\0', sizeof(attach->name)) == NULL ||
	    memchr(attach->ifname, '\0', sizeof(attach->ifname)) == NULL ||
	    memchr(attach->netns_path, '\0', sizeof(attach->netns_path)) == NULL ||
	    (attach->kind != TAP_KIND_TAP && attach->kind != TAP_KIND_NETNS))
		return error_set(err, ERROR_CORRUPT, "malformed attach request");
	memcpy(config.name, attach->name, sizeof(config.name));
	memcpy(config.ifname, attach->ifname, sizeof(config.ifname));
	config.kind = (enum tap_kind)attach->kind;
	config.owner_uid = attach->owner_uid;
	config.owner_gid = attach->owner_gid;
	memcpy(config.guest_mac, attach->guest_mac, sizeof(config.guest_mac));
	config.guest4 = attach->guest4;
	config.gateway4 = attach->gateway4;
	config.bits4 = attach->bits4;
	config.guest6 = attach->guest6;
	config.gateway6 = attach->gateway6;
	config.bits6 = attach->bits6;
	config.netns_fd = -1;
	if (tap_config_check(&config, err) < 0)
		return -1;
	if (config.kind == TAP_KIND_NETNS) {
		config.netns_fd = keeper_netns_of(attach, err);
		if (config.netns_fd < 0) {
			/* A container that went while the daemon was down: what was kept for it goes too. */
			if (attach->adopt != 0 && err->code == ERROR_NOT_FOUND)
				tap_detach_kept(config.name, keeper.options->netns_dir);
			return -1;
		}
	}
	*ret_config = config;
	return 0;
}

/* Map the policy and put its ranges in force. */
static int
keeper_sandbox_apply(struct keeper_sandbox *sandbox, struct snapshot *snapshot, struct error *err)
{
	size_t count;
	const struct addr_range *ranges = snapshot_ranges(snapshot, &count);

	return tap_ranges_set(sandbox->tap, ranges, count, err);
}

/* The least loaded gateway would need counting; spreading by id is as good over many short-lived sandboxes. */
static struct keeper_role *
keeper_gateway_for(int64_t id)
{
	return &keeper.gateways[keeper_sandbox_turn(id) % keeper.gateway_count];
}

struct keeper_sandbox *
keeper_sandbox_attach(const struct msg_attach *attach, int snapshot_fd, struct error *err)
{
	struct keeper_sandbox *sandbox;
	struct tap_config config;
	struct stat st;

	if (keeper.sandbox_count >= KEEPER_SANDBOXES_MAX) {
		error_set(err, ERROR_LIMIT, "%d sandboxes are attached: the maximum", KEEPER_SANDBOXES_MAX);
		goto fail_fd;
	}
	sandbox = calloc(1, sizeof(*sandbox));
	if (sandbox == NULL) {
		error_sys(err, ENOMEM, "sandbox %.63s", attach->name);
		goto fail_fd;
	}
	sandbox->id = attach->id;
	sandbox->generation = attach->generation;
	sandbox->snapshot_fd = snapshot_fd;
	sandbox->gateway = keeper_gateway_for(attach->id);
	sandbox->snapshot = snapshot_open(snapshot_fd, err);
	if (sandbox->snapshot == NULL || keeper_attach_config(attach, &config, err) < 0)
		goto fail;
	if (config.netns_fd >= 0 && fstat(config.netns_fd, &st) == 0) {
		sandbox->netns_dev = st.st_dev;
		sandbox->netns_ino = st.st_ino;
	}
	if (tap_attach(&config, keeper.options->netns_dir, attach->adopt != 0, &sandbox->tap, err) < 0)
		sandbox->tap = NULL;
	if (config.netns_fd >= 0)
		close(config.netns_fd);
	if (sandbox->tap == NULL || keeper_sandbox_apply(sandbox, sandbox->snapshot, err) < 0)
		goto fail;
	if (keeper.usage_next_id == sandbox->id) {
		sandbox->usage = keeper.usage_next;
		keeper.usage_next = (struct usage_table){0};
		keeper.usage_next_id = 0;
	}
	sandbox->next = keeper.buckets[keeper_bucket(sandbox->id)];
	keeper.buckets[keeper_bucket(sandbox->id)] = sandbox;
	keeper.sandbox_count++;
	keeper_watch_add(sandbox);
	return sandbox;
fail:
	if (sandbox->tap != NULL)
		tap_detach(sandbox->tap, false);
	snapshot_free(sandbox->snapshot);
	free(sandbox);
fail_fd:
	close(snapshot_fd);
	return NULL;
}

static int
keeper_udp_send(struct keeper_sandbox *sandbox, uint16_t port, struct error *err)
{
	struct msg_udp_port body = {.id = sandbox->id, .port = port};
	int fds[2];

	fds[0] = tap_socket_udp(sandbox->tap, 4, port, err);
	if (fds[0] < 0)
		return -1;
	fds[1] = tap_socket_udp(sandbox->tap, 6, port, err);
	if (fds[1] < 0) {
		close(fds[0]);
		return -1;
	}
	ipc_send(&sandbox->gateway->ipc, MSG_UDP_PORT, 0, &body, sizeof(body), fds, 2);
	close(fds[0]);
	close(fds[1]);
	return 0;
}

static bool
keeper_udp_has(const struct snapshot *snapshot, uint16_t port)
{
	size_t count;
	const uint16_t *ports = snapshot_udp_ports(snapshot, &count);

	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* Sockets for the UDP ports that wanted has and have (may be NULL) has not. */
static int
keeper_udp_open(
    struct keeper_sandbox *sandbox, const struct snapshot *wanted, const struct snapshot *have, struct error *err)
{
	size_t count;
	const uint16_t *ports = snapshot_udp_ports(wanted, &count);

	for (size_t i = 0; i < count; i++)
		if ((have == NULL || !keeper_udp_has(have, ports[i])) && keeper_udp_send(sandbox, ports[i], err) < 0)
			return -1;
	return 0;
}

static void
keeper_udp_close(struct keeper_sandbox *sandbox, const struct snapshot *had, const struct snapshot *wanted)
{
	size_t count;
	const uint16_t *ports = snapshot_udp_ports(had, &count);

	for (size_t i = 0; i < count; i++) {
		struct msg_udp_port body = {.id = sandbox->id, .port = ports[i]};

		if (!keeper_udp_has(wanted, ports[i]))
			ipc_send(&sandbox->gateway->ipc, MSG_UDP_PORT_DEL, 0, &body, sizeof(body), NULL, 0);
	}
}

int
keeper_sandbox_serve(struct keeper_sandbox *sandbox, uint64_t tag)
{
	const struct tap_config *config = tap_config(sandbox->tap);
	struct msg_sandbox_add add = {.id = sandbox->id,
	    .generation = sandbox->generation,
	    .guest4 = config->guest4,
	    .gateway4 = config->gateway4,
	    .guest6 = config->guest6,
	    .gateway6 = config->gateway6};
	int fds[TAP_SOCKET_MAX + 1];
	struct error err;
	int rc;

	memcpy(add.name, config->name, sizeof(add.name));
	memcpy(add.refused_base, sandbox->refused_base, sizeof(add.refused_base));
	for (int i = 0; i < TAP_SOCKET_MAX; i++)
		fds[i] = tap_socket(sandbox->tap, (enum tap_socket)i);
	fds[TAP_SOCKET_MAX] = sandbox->snapshot_fd;
	/* Counts first: a grant must not be whole again for a moment. */
	rc = usage_table_send(&sandbox->usage, &sandbox->gateway->ipc, sandbox->id, "");
	if (rc < 0)
		return rc;
	rc = ipc_send(&sandbox->gateway->ipc, MSG_SANDBOX_ADD, tag, &add, sizeof(add), fds, TAP_SOCKET_MAX + 1);
	if (rc < 0)
		return rc;
	sandbox->served = true;
	if (keeper_udp_open(sandbox, sandbox->snapshot, NULL, &err) < 0)
		log_warnx("%s: %s", config->name, err.text); /* that port is refused; the rest works */
	return 0;
}

int
keeper_sandbox_policy(
    struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, uint64_t tag, struct error *err)
{
	struct msg_policy body = {.id = sandbox->id, .generation = generation};
	struct snapshot *snapshot = snapshot_open(snapshot_fd, err);
	int rc;

	if (snapshot == NULL)
		return -1;
	if (keeper_sandbox_apply(sandbox, snapshot, err) < 0) {
		snapshot_free(snapshot);
		return -1;
	}
	rc = keeper_udp_open(sandbox, snapshot, sandbox->snapshot, err);
	if (rc == 0) {
		rc = ipc_send(&sandbox->gateway->ipc, MSG_POLICY, tag, &body, sizeof(body), &snapshot_fd, 1);
		if (rc < 0)
			error_sys(err, -rc, "the gateway does not answer");
	}
	if (rc < 0) {
		struct error ignored;

		/* Back to the old generation: ranges, and the sockets of ports it does not know. */
		keeper_sandbox_apply(sandbox, sandbox->snapshot, &ignored);
		keeper_udp_close(sandbox, snapshot, sandbox->snapshot);
		snapshot_free(snapshot);
		return -1;
	}
	snapshot_free(sandbox->offered);
	sandbox->offered = snapshot;
	return 0;
}

void
keeper_sandbox_policy_done(struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, bool taken)
{
	struct error err;
	struct snapshot *snapshot = snapshot_open(snapshot_fd, &err);

	snapshot_free(sandbox->offered);
	sandbox->offered = NULL;
	if (taken && snapshot != NULL) {
		keeper_udp_close(sandbox, sandbox->snapshot, snapshot);
		snapshot_free(sandbox->snapshot);
		close(sandbox->snapshot_fd);
		sandbox->snapshot = snapshot;
		sandbox->snapshot_fd = snapshot_fd;
		sandbox->generation = generation;
		usage_table_keep(&sandbox->usage, snapshot);
		return;
	}
	if (keeper_sandbox_apply(sandbox, sandbox->snapshot, &err) < 0)
		log_warnx("%s: %s", tap_config(sandbox->tap)->name, err.text);
	if (snapshot != NULL)
		keeper_udp_close(sandbox, snapshot, sandbox->snapshot);
	snapshot_free(snapshot);
	close(snapshot_fd);
}

void
keeper_sandbox_free(struct keeper_sandbox *sandbox, bool keep)
{
	for (struct keeper_sandbox **at = &keeper.buckets[keeper_bucket(sandbox->id)]; *at != NULL; at = &(*at)->next) {
		if (*at != sandbox)
			continue;
		*at = sandbox->next;
		keeper.sandbox_count--;
		break;
	}
	keeper_watch_remove(sandbox);
	tap_detach(sandbox->tap, keep);
	snapshot_free(sandbox->snapshot);
	snapshot_free(sandbox->offered);
	close(sandbox->snapshot_fd);
	usage_table_free(&sandbox->usage);
	free(sandbox);
}

void
keeper_sandbox_describe(const struct keeper_sandbox *sandbox, struct msg_attached *ret_attached)
{
	const struct tap_config *config = tap_config(sandbox->tap);

	memset(ret_attached, 0, sizeof(*ret_attached));
	snprintf(ret_attached->netns, sizeof(ret_attached->netns), "%s", tap_netns_path(sandbox->tap));
	memcpy(ret_attached->ifname, config->ifname, sizeof(ret_attached->ifname));
	memcpy(ret_attached->guest_mac, config->guest_mac, sizeof(ret_attached->guest_mac));
	memcpy(ret_attached->gateway_mac, tap_gateway_mac(sandbox->tap), sizeof(ret_attached->gateway_mac));
	ret_attached->netns_dev = sandbox->netns_dev;
	ret_attached->netns_ino = sandbox->netns_ino;
}
