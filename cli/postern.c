/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern: the command line. Each command is a client of posternd's control API, but for log, top, stats, verify and
 * seal, which read the audit database themselves, and doctor, which looks at this machine. */
#include "cli/commands.h"

int
main(int argc, char **argv)
{
	return commands_main(argc, argv);
}
