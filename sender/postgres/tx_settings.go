package postgres

import (
	"maps"
	"slices"
	"strings"

	"github.com/surehook/surehook/internal/pgtx"
)

// settings are those of the store's own transactions. Left alone, the planner reads
// whole tables for each batch, at a cost that grows with the subscriptions, and starts
// processes to read a few rows. So everything is found by an index, and read in its
// order and not to its end, whatever the statistics say: they are old when it matters,
// as where there was little a moment ago there is much now.
//
// A process that is stopped in the middle must not keep its locks. What waits for
// somebody else's gives up its own after a while, and is tried again.
var settings = map[string]string{
	"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off",
	"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off",
	"max_parallel_workers_per_gather": "0", "jit": "off", "plan_cache_mode": "force_generic_plan",
	"idle_in_transaction_session_timeout": "2s", "lock_timeout": "5s",
}

// patience is how long a dispatcher's statement may take, whatever little its role is
// given: as long as a lease holds.
var patience = map[string]string{"statement_timeout": "60s"}

// sessionSettings are those that a connection has beside them that has nobody else's
// transactions.
var sessionSettings = map[string]string{
	"default_transaction_isolation": "read committed",
	"tcp_user_timeout":              "10s",
}

// durable makes the transaction durable that it runs in. Statements that change
// something on a caller's behalf return it with the row that they change, which nobody
// reads.
const durable = pgtx.Durable

// durably makes the transactions of a connection durable: a commit that the server's
// setting would let be lost.
const durably = `CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END`

// own gives the settings to a transaction that callers ask for: how long a statement may
// take is for their role to say.
var txSettings = `SELECT {now}, ` + set(durable, settings, "true")

// ownPooled gives them to a dispatcher's transaction, of whose connection nothing is
// known.
var pooledTxSettings = `SELECT {now}, ` + set(durable, with(settings, patience), "true")

// set is an expression that sets these beside another one, in a transaction ("true") or
// in a connection ("false").
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
