/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policy texts, each held once, however many sandboxes have it. */
#ifndef POSTERN_GATEWAY_CONTROL_TEXT_H
#define POSTERN_GATEWAY_CONTROL_TEXT_H

/* The text, shared with all who have the same; to be given back. NULL without memory, and for NULL. On one thread only.
 */
const char *control_text_share(const char *text);
void control_text_release(const char *text); /* accepts NULL */

#endif
