/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attach. Control's request is checked; the sandbox is made, whole or not at all; its gateway gets its sockets and
 * policy; control gets the answer when the gateway has taken it.
 *
 * A gateway that is not ready gets the sandbox as soon as it is, and one that ends before it answers is no failure
 * either: until the next one serves the sandbox, no packet of it is accepted. A gateway that refuses a new sandbox
 * undoes the attach. A request for a sandbox that is there already comes from a restarted control: it changes the
 * policy when the generation is another one. */
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

static void attach_serve_done(struct keeper *, const struct keeper_pending *, const void *);
static void attach_again_done(struct keeper *, const struct keeper_pending *, const void *);

static const struct keeper_operation attach_serve_operation = {MSG_RESULT, attach_serve_done};
static const struct keeper_operation attach_again_operation = {MSG_POLICY_DONE, attach_again_done};

/* The answer to control: ERROR_NONE describes the sandbox. control_tag 0: control does not wait. */
static void
attach_answer(struct keeper *keeper, uint64_t control_tag, const struct keeper_sandbox *sandbox, enum error_code code,
    const char *text)
{
	struct msg_attached attached;

	if (control_tag == 0)
		return;
	memset(&attached, 0, sizeof(attached));
	keeper_answer_result(&attached.result, code, text);
	if (code == ERROR_NONE && sandbox != NULL) {
		const struct tap_config *config = tap_config(sandbox->tap);

		snprintf(attached.netns, sizeof(attached.netns), "%s", tap_netns_path(sandbox->tap));
		memcpy(attached.ifname, config->ifname, sizeof(attached.ifname));
		memcpy(attached.guest_mac, config->guest_mac, sizeof(attached.guest_mac));
		memcpy(attached.router_mac, tap_router_mac(sandbox->tap), sizeof(attached.router_mac));
		attached.netns_dev = sandbox->netns_dev;
		attached.netns_ino = sandbox->netns_ino;
	}
	ipc_send(&keeper->control->ipc, MSG_ATTACHED, control_tag, &attached, sizeof(attached), NULL, 0);
}

/* The request. */

/* Opens a network namespace by path; a path may name a FIFO or a device, whose open would have an effect. */
static int
attach_netns_open(const char *path, struct error *err)
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

/* Opens the container's namespace, and checks that it is the one meant: a recycled pid or name has another inode.
 * (CASES F-08) */
static int
attach_netns(const struct msg_attach *attach, struct stat *ret_st, struct error *err)
{
	char path[MSG_PATH_MAX];
	int fd;

	if (attach->pid > 0)
		snprintf(path, sizeof(path), "/proc/%d/ns/net", attach->pid);
	else
		snprintf(path, sizeof(path), "%s", attach->netns_path);
	fd = attach_netns_open(path, err);
	if (fd < 0) {
		if (attach->adopt != 0 && err->code == ERROR_USAGE)
			err->code = ERROR_NOT_FOUND; /* the file is there, the mount on it is not */
		return -1;
	}
	if (fstat(fd, ret_st) < 0 ||
	    (attach->netns_ino != 0 && (ret_st->st_ino != attach->netns_ino || ret_st->st_dev != attach->netns_dev))) {
		close(fd);
		return error_set(err, ERROR_NOT_FOUND, "%s is another namespace than the one attached before", path);
	}
	return fd;
}

/* Checks the request and fills the configuration from it; opens the container's namespace, if there is one. */
static int
attach_config(const struct keeper *keeper, const struct msg_attach *attach, struct tap_config *ret_config,
    struct stat *ret_st, struct error *err)
{
	struct tap_config config = {.kind = (enum tap_kind)attach->kind,
	    .owner_uid = attach->owner_uid,
	    .owner_gid = attach->owner_gid,
	    .guest4 = attach->guest4,
	    .router4 = attach->router4,
	    .bits4 = attach->bits4,
	    .guest6 = attach->guest6,
	    .router6 = attach->router6,
	    .bits6 = attach->bits6,
	    .netns_fd = -1};

	if (memchr(attach->name, '\0', sizeof(attach->name)) == NULL ||
	    memchr(attach->ifname, '\0', sizeof(attach->ifname)) == NULL ||
	    memchr(attach->netns_path, '\0', sizeof(attach->netns_path)) == NULL ||
	    (attach->kind != TAP_KIND_TAP && attach->kind != TAP_KIND_NETNS))
		return error_set(err, ERROR_CORRUPT, "malformed attach request");
	memcpy(config.name, attach->name, sizeof(config.name));
	memcpy(config.ifname, attach->ifname, sizeof(config.ifname));
	memcpy(config.guest_mac, attach->guest_mac, sizeof(config.guest_mac));
	if (tap_config_check(&config, err) < 0)
		return -1;
	if (config.kind == TAP_KIND_NETNS) {
		config.netns_fd = attach_netns(attach, ret_st, err);
		if (config.netns_fd < 0) {
			/* A container that went while the daemon was down: what was kept for it goes too. */
			if (attach->adopt != 0 && err->code == ERROR_NOT_FOUND)
				tap_detach_kept(config.name, keeper->options->netns_dir);
			return -1;
		}
	}
	*ret_config = config;
	return 0;
}

/* Makes all but the gateway's part. Takes snapshot_fd. NULL with *err on failure, and nothing is left behind. */
static struct keeper_sandbox *
attach_make(struct keeper *keeper, const struct msg_attach *attach, int snapshot_fd, struct error *err)
{
	struct keeper_sandbox *sandbox = NULL;
	struct tap_config config;
	struct stat st = {0};

	if (keeper->sandbox_count >= KEEPER_SANDBOXES_MAX) {
		error_set(err, ERROR_LIMIT, "%d sandboxes are attached: the maximum", KEEPER_SANDBOXES_MAX);
		goto fail;
	}
	sandbox = calloc(1, sizeof(*sandbox));
	if (sandbox == NULL) {
		error_sys(err, ENOMEM, "sandbox %.63s", attach->name);
		goto fail;
	}
	sandbox->id = attach->id;
	sandbox->generation = attach->generation;
	sandbox->snapshot_fd = snapshot_fd;
	/* The least loaded gateway would need counting; spreading by id is as good over many short-lived sandboxes. */
	sandbox->gateway = &keeper->gateways[keeper_sandbox_turn(attach->id) % keeper->gateway_count];
	sandbox->snapshot = snapshot_open(snapshot_fd, err);
	if (sandbox->snapshot == NULL || attach_config(keeper, attach, &config, &st, err) < 0)
		goto fail;
	sandbox->netns_dev = st.st_dev;
	sandbox->netns_ino = st.st_ino;
	if (tap_attach(&config, keeper->options->netns_dir, attach->adopt != 0, &sandbox->tap, err) < 0)
		sandbox->tap = NULL;
	if (config.netns_fd >= 0)
		close(config.netns_fd);
	if (sandbox->tap == NULL || keeper_policy_apply(sandbox, sandbox->snapshot, err) < 0)
		goto fail;
	keeper_usage_claim(keeper, sandbox);
	keeper_sandbox_add(keeper, sandbox);
	return sandbox;
fail:
	if (sandbox != NULL) {
		tap_detach(sandbox->tap, false);
		snapshot_free(sandbox->snapshot);
	}
	free(sandbox);
	close(snapshot_fd);
	return NULL;
}

/* Gives the sandbox's sockets and policy to its gateway, which answers. control_tag 0: control does not wait. */
static void
attach_serve(struct keeper *keeper, struct keeper_sandbox *sandbox, uint64_t control_tag)
{
	const struct tap_config *config = tap_config(sandbox->tap);
	struct ipc *ipc = &sandbox->gateway->ipc;
	struct msg_sandbox_add add = {.id = sandbox->id,
	    .generation = sandbox->generation,
	    .guest4 = config->guest4,
	    .router4 = config->router4,
	    .guest6 = config->guest6,
	    .router6 = config->router6};
	struct keeper_pending *pending = keeper_answer_await(keeper, &attach_serve_operation, control_tag, sandbox);
	int fds[TAP_SOCKET_MAX + 1];
	struct error err;

	memcpy(add.name, config->name, sizeof(add.name));
	memcpy(add.refused_base, sandbox->refused_base, sizeof(add.refused_base));
	for (int i = 0; i < TAP_SOCKET_MAX; i++)
		fds[i] = tap_socket(sandbox->tap, (enum tap_socket)i);
	fds[TAP_SOCKET_MAX] = sandbox->snapshot_fd;
	/* Counts first: a grant must not be whole again for a moment. When a send fails the channel breaks, and the
	 * gateway's end answers what waits. */
	if (usage_table_send(&sandbox->usage, ipc, sandbox->id, "") < 0 ||
	    ipc_send(ipc, MSG_SANDBOX_ADD, pending->tag, &add, sizeof(add), fds, TAP_SOCKET_MAX + 1) < 0)
		return;
	sandbox->served = true;
	if (keeper_policy_udp_open(sandbox, sandbox->snapshot, NULL, &err) < 0)
		log_warnx("%s: %s", config->name, err.text); /* that port is refused; the rest works */
}

/* The sandbox is there already. Takes fd. */
static void
attach_again(
    struct keeper *keeper, struct keeper_sandbox *sandbox, uint64_t tag, const struct msg_attach *attach, int fd)
{
	struct keeper_pending *pending;
	struct error err;

	/* The usage that control has stored may be older than ours. */
	sandbox->usage_unsent = sandbox->usage.count > 0;
	keeper_usage_forward(sandbox);
	if (attach->generation == sandbox->generation) {
		close(fd);
		attach_answer(keeper, tag, sandbox, ERROR_NONE, "");
		return;
	}
	pending = keeper_answer_await(keeper, &attach_again_operation, tag, sandbox);
	pending->snapshot_fd = fd;
	pending->generation = attach->generation;
	if (keeper_policy_offer(sandbox, fd, attach->generation, pending->tag, &err) < 0) {
		keeper_answer_cancel(keeper);
		close(fd);
		attach_answer(keeper, tag, NULL, err.code, err.text);
	}
}

bool
keeper_attach_request(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_attach *attach = message->body;
	struct keeper *keeper = control->keeper;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(keeper, attach->id);
	uint64_t tag = message->header.tag;
	int fd = message->fds[0];
	struct error err;

	message->fds[0] = -1;
	if (sandbox != NULL) {
		attach_again(keeper, sandbox, tag, attach, fd);
		return true;
	}
	sandbox = attach_make(keeper, attach, fd, &err);
	if (sandbox == NULL)
		attach_answer(keeper, tag, NULL, err.code, err.text);
	else if (!sandbox->gateway->ready) /* served as soon as it is */
		attach_answer(keeper, tag, sandbox, ERROR_NONE, "");
	else
		attach_serve(keeper, sandbox, tag);
	return true;
}

void
keeper_attach_gateway_ready(struct keeper_role *gateway)
{
	struct keeper_sandbox *sandbox;

	TAILQ_FOREACH(sandbox, &gateway->keeper->watched, watched)
	if (sandbox->gateway == gateway && !sandbox->served)
		attach_serve(gateway->keeper, sandbox, 0);
}

/* The gateway's answer. */

/* The gateway has the sandbox, refused it, or ended: then the sandbox waits for the next one. */
static void
attach_serve_done(struct keeper *keeper, const struct keeper_pending *pending, const void *answer)
{
	static const struct msg_result ended = {.code = ERROR_NONE};
	const struct msg_result *result = answer == NULL ? &ended : answer;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(keeper, pending->sandbox);

	if (result->code != ERROR_NONE) {
		log_warnx("the gateway refused a sandbox: %.256s", result->text);
		if (sandbox != NULL && pending->control_tag != 0) {
			keeper_sandbox_free(keeper, sandbox, false);
			sandbox = NULL;
		} else if (sandbox != NULL) {
			sandbox->served = false; /* a restarted gateway refused it: the next one gets it, too */
		}
	}
	attach_answer(keeper, pending->control_tag, sandbox, (enum error_code)result->code, result->text);
}

/* The gateway has the new policy of a sandbox that was there already, refused it, or ended: the next one gets it. */
static void
attach_again_done(struct keeper *keeper, const struct keeper_pending *pending, const void *answer)
{
	static const struct msg_result ended = {.code = ERROR_NONE};
	const struct msg_result *result = answer == NULL ? &ended : answer; /* an answer begins with one */
	struct keeper_sandbox *sandbox = keeper_sandbox_find(keeper, pending->sandbox);

	if (sandbox != NULL)
		keeper_policy_settle(sandbox, pending->snapshot_fd, pending->generation, result->code == ERROR_NONE);
	else
		close(pending->snapshot_fd);
	attach_answer(keeper, pending->control_tag, sandbox, (enum error_code)result->code, result->text);
}
