/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where things are when nobody says otherwise: the same answer for posternd and postern, for root and for a user. */
#ifndef POSTERN_BASE_PATHS_H
#define POSTERN_BASE_PATHS_H

/* The system's daemon's. */
#define PATHS_SYSTEM_RUNTIME "/run/postern"
#define PATHS_SYSTEM_STATE "/var/lib/postern"

/* $POSTERN_RUNTIME_DIR; else /run/postern for root, $XDG_RUNTIME_DIR/postern (or /tmp/postern-UID) for others. A user
 * who may use the system's daemon sets POSTERN_RUNTIME_DIR=/run/postern, or has no daemon of his own: when his own
 * directory has no control socket but the system's has one, that is the answer. Static storage. */
const char *paths_runtime_dir(void);

/* The directory a daemon started by this user makes: as above, without the look at the system's. */
const char *paths_own_runtime_dir(void);

/* $POSTERN_STATE_DIR; else /var/lib/postern for root or when paths_runtime_dir is the system's,
 * $XDG_STATE_HOME/postern or ~/.local/state/postern otherwise. Static storage. */
const char *paths_state_dir(void);
const char *paths_own_state_dir(void);

/* $POSTERN_COUNTRY_DB, $POSTERN_ASN_DB: databases of addresses that a daemon reads; NULL: none. */
const char *paths_country_db(void);
const char *paths_asn_db(void);

#endif
