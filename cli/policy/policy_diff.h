/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern policy diff: what one policy says and another does not. */
#ifndef POSTERN_CLI_POLICY_DIFF_H
#define POSTERN_CLI_POLICY_DIFF_H

int policy_diff(int argc, char **argv);

#endif
