package postgres

import (
	"maps"
	"slices"
	"strings"

	"github.com/surehook/surehook/internal/pgtx"
)

// settings are for the transactions of the store. With its defaults the planner reads
// whole tables for each batch, at a cost that grows with the subscriptions, and starts
// processes to read a few rows. With these it uses an index for everything, and reads it
// in its order and not to its end, whatever the statistics say. They are old when it
// matters: a table that was almost empty a moment ago may be large now.
//
// A process that is stopped in the middle must not keep its locks. A transaction that waits
// for the lock of another one gives up its own after a while, and is tried again.
var settings = map[string]string{
	"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off",
	"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off",
	"max_parallel_workers_per_gather": "0", "jit": "off", "plan_cache_mode": "force_generic_plan",
	"idle_in_transaction_session_timeout": "2s", "lock_timeout": "5s",
}

// patience bounds a dispatcher's statement, even if its role allows less: by the time for
// which a lease holds.
var patience = map[string]string{"statement_timeout": "60s"}

// sessionSettings are the further settings of a connection that nobody else uses.
var sessionSettings = map[string]string{
	"default_transaction_isolation": "read committed",
	"tcp_user_timeout":              "10s",
}

// unhurried lifts the limit that a role may have for whole transactions, since PostgreSQL 17,
// for a transaction ("true") or a connection ("false").
func unhurried(local string) string {
	return `CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', ` + local + `) END`
}

// durable makes the transaction durable in which it runs. Statements that change something
// for a caller return it with the changed row, and nobody reads it.
const durable = pgtx.Durable

// durably makes the transactions of a connection durable, if by the server's setting a
// commit could be lost.
const durably = `CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END`

// txSettings gives the settings to a transaction that callers ask for. The role of these
// decides how long a statement may take.
var txSettings = `SELECT {now}, ` + set(durable, settings, "true")

// pooledTxSettings gives them to a dispatcher's transaction on a connection of a pooler,
// which may have any settings.
var pooledTxSettings = `SELECT {now}, ` + set(durable+`, `+unhurried("true"), with(settings, patience), "true")

// set returns an expression that sets these beside another one, for a transaction ("true")
// or a connection ("false").
func set(beside string, all map[string]string, local string) string {
	calls := []string{beside}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		calls = append(calls, `set_config('`+name+`', '`+all[name]+`', `+local+`)`)
	}
	return `concat(` + strings.Join(calls, `, `) + `)`
}

func with(some, others map[string]string) map[string]string {
	all := maps.Clone(some)
	maps.Copy(all, others)
	return all
}
