// Package deptest_test checks which packages of the module may import which, and what
// each may import from outside. Imports of test files are free.
package deptest_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// rule says which packages some packages may reach through any chain of imports.
type rule struct {
	name    string
	from    []string // the packages that it binds
	but     []string // exceptions
	never   []string // packages that they must not reach
	only    []string // if set: the only packages that are neither standard nor ours
	must    string   // if set: packages that each must import itself
	direct  []string // packages that they must not import themselves, while their imports may
	because string
}

var (
	drivers = []string{
		"modernc.org/sqlite/...", "github.com/mattn/go-sqlite3/...", "github.com/ncruces/go-sqlite3/...",
		"zombiezen.com/go/sqlite/...", "github.com/glebarez/...", "github.com/lib/pq/...", "github.com/go-sql-driver/...",
	}
	stores = []string{"sender/memory", "sender/sqlite", "sender/postgres"}
	// children are the packages beside sender/filter, on which sender stands.
	children = slices.Concat(stores, []string{
		"sender/dispatch", "sender/history", "sender/replay", "sender/feed", "sender/challenge", "sender/console", "sender/portal", "sender/rules",
		"sender/jobs", "sender/jobs/...", "sender/storetest", "sender/sendertest", "sender/senderprom", "sender/senderotel", "sender/internal/...",
	})
	programs = []string{"examples/...", "internal/proof/..."}
	kits     = []string{"dedup/deduptest", "dedup/internal/niltest", "receiver/receivertest", "receiver/inbox/inboxtest", "sender/storetest", "sender/sendertest", "sender/internal/bedtest", "sender/internal/takeovertest", "sender/jobs/jobstest", "sender/postgres/postgrestest"}
)

var rules = []rule{
	{
		name:    "light",
		from:    []string{"signing/...", "backoff/...", "dedup/...", "receiver/...", "sender/sendertest"},
		but:     []string{"dedup/postgres", "receiver/catchup/postgres", "receiver/inbox/postgres"},
		only:    []string{"golang.org/x/sync/..."},
		because: "who verifies a signature, or tests what is sent, should not have to audit anybody else's code",
	},
	{
		name:    "receiving side",
		from:    []string{"receiver/..."},
		never:   []string{"sender/..."},
		because: "the two sides run in different services and share only signing, backoff, dedup and internal",
	},
	{
		name:    "sending side",
		from:    []string{"sender/..."},
		never:   []string{"receiver/..."},
		because: "the two sides run in different services and share only signing, backoff, dedup and internal",
	},
	{
		name:    "foundations",
		from:    []string{"signing/...", "backoff/...", "dedup/..."},
		never:   []string{"sender/...", "receiver/..."},
		because: "what both sides build on must not know either",
	},
	{
		name:    "signing and backoff stand alone",
		from:    []string{"signing/...", "backoff/..."},
		never:   []string{"dedup/...", "database/sql/..."},
		because: "they are functions of bytes and values and know no database",
	},
	{
		name:    "internal",
		from:    []string{"internal/..."},
		but:     programs,
		never:   []string{"sender/...", "receiver/...", "dedup/..."},
		because: "what everybody shares must be importable by everybody",
	},
	{
		name:    "dedup does not know its stores",
		from:    []string{"dedup"},
		never:   []string{"dedup/*"},
		because: "a store imports what it implements, never the other way round",
	},
	{
		name:    "the front door knows no store",
		from:    []string{"."},
		never:   slices.Concat(stores, []string{"sender/storetest", "dedup/*", "receiver/*"}),
		only:    []string{"golang.org/x/sync/..."},
		because: "whoever imports it must not link what they do not use",
	},
	{
		name:    "nobody stands on the front door",
		from:    []string{"./..."},
		but:     append([]string{"."}, programs...),
		never:   []string{"."},
		because: "it only puts parts together",
	},
	{
		name:    "sender knows none of its children",
		from:    []string{"sender"},
		never:   children,
		because: "it has the words that they share, for whoever publishes",
	},
	{
		name:    "filters stand alone",
		from:    []string{"sender/filter"},
		never:   []string{"sender", "sender/internal/...", "internal/..."},
		only:    []string{},
		because: "they are functions of bytes, which a customer's own code may run as well",
	},
	{
		name:    "the parts of sender know neither the dispatcher nor each other",
		from:    []string{"sender/history", "sender/replay", "sender/feed", "sender/challenge", "sender/catalogue"},
		never:   slices.Concat(stores, []string{"sender/dispatch", "sender/rules", "sender/history", "sender/replay", "sender/feed", "sender/challenge", "sender/catalogue"}),
		because: "each has a reader of its own, who need read nothing else",
	},
	{
		name:    "the dispatcher knows no store",
		from:    []string{"sender/dispatch"},
		never:   slices.Concat(stores, []string{"sender/rules", "sender/history", "sender/feed", "sender/challenge"}),
		because: "it works on what implements its Store",
	},
	{
		name: "post knows neither dispatcher nor stores nor keys",
		from: []string{"sender/internal/post"},
		never: []string{ // sender/filter alone is beneath sender
			"sender/catalogue/...", "sender/challenge", "sender/console", "sender/dispatch", "sender/feed", "sender/history", "sender/jobs/...", "sender/memory", "sender/portal",
			"sender/postgres/...", "sender/replay", "sender/rules", "sender/sendertest", "sender/sqlite", "sender/storetest", "internal/pgtx",
		},
		because: "it makes one POST of what it is given opened, so that who reads what is sent need read nothing else",
	},
	{
		name:    "rules know no store",
		from:    []string{"sender/rules"},
		never:   slices.Concat(stores, []string{"sender/storetest", "sender/feed", "sender/challenge", "sender/console", "sender/portal"}),
		direct:  []string{"database/sql/..."},
		because: "they are functions of values, and what every store runs",
	},
	{
		name:    "stores of sender run its rules",
		from:    stores,
		must:    "sender/rules",
		because: "a rule about outcomes is written once",
	},
	{
		name:    "receiver knows no store",
		from:    []string{"receiver/..."},
		but:     []string{"receiver/receivertest", "receiver/catchup/*", "receiver/inbox/*"},
		never:   []string{"dedup/*", "receiver/*/..."},
		because: "the caller hands it the store of the database that they have",
	},
	{
		name:    "stores of dedup implement dedup",
		from:    []string{"dedup/memory", "dedup/sqlite", "dedup/mysql", "dedup/postgres", "dedup/deduptest"},
		must:    "dedup",
		because: "its interfaces are the contract",
	},
	{
		name:    "stores of sender implement sender",
		from:    []string{"sender/memory", "sender/sqlite", "sender/postgres", "sender/storetest"},
		must:    "sender",
		because: "its interfaces are the contract",
	},
	{
		name:    "the console and the portal know no store",
		from:    []string{"sender/console", "sender/portal"},
		never:   slices.Concat(stores, []string{"sender/dispatch", "sender/rules", "sender/storetest"}),
		because: "they show what any store has",
	},
	{
		name:    "jobs do not know their stores",
		from:    []string{"sender/jobs"},
		never:   []string{"sender/jobs/*", "sender/memory", "sender/sqlite", "sender/postgres"},
		because: "a store imports what it implements, never the other way round",
	},
	{
		name:    "stores of jobs implement jobs",
		from:    []string{"sender/jobs/*"},
		must:    "sender/jobs",
		because: "its interfaces are the contract",
	},
	{
		name:    "pgx",
		from:    []string{"./..."},
		but:     append([]string{"internal/pgtx", "dedup/postgres", "receiver/catchup/postgres", "receiver/inbox/postgres", "sender/internal/pgrun", "sender/postgres", "sender/postgres/postgrestest", "sender/jobs/postgres"}, programs...),
		never:   []string{"github.com/jackc/..."},
		because: "who does not use PostgreSQL must not link its driver",
	},
	{
		name:    "database drivers",
		from:    []string{"./..."},
		but:     programs,
		never:   drivers,
		because: "the sqlite and mysql stores take a *sql.DB, and which driver is the user's choice",
	},
	{
		name:    "examples are not imported",
		from:    []string{"./..."},
		but:     []string{"examples/..."}, // one may have packages of its own
		never:   []string{"examples/..."},
		because: "what shows how to use the library is no part of it",
	},
	{
		name:    "examples embed as anybody does",
		from:    []string{"examples/..."},
		direct:  []string{"internal/..."},
		because: "what they show must be possible outside of this module",
	},
	{
		name:    "web frameworks and metrics",
		from:    []string{"./..."},
		but:     programs,
		never:   []string{"github.com/danielgtaylor/...", "github.com/prometheus/..."},
		because: "the reference server's API and its figures are an example, and nobody's dependency",
	},
	{
		name:    "assertions",
		from:    []string{"./..."},
		but:     []string{"sender/internal/bedtest"}, // only tests import it
		never:   []string{"github.com/stretchr/...", "github.com/google/go-cmp/...", "pgregory.net/..."},
		because: "they are for test files: everything else is linked into users' programs",
	},
	{
		name:    "testing",
		from:    []string{"./..."},
		but:     slices.Concat([]string{"internal/*test"}, programs, kits),
		never:   []string{"testing/...", "net/http/httptest/..."},
		because: "test support in a production binary brings its flags along",
	},
}

// broken has one line for every package that breaks a rule.
func broken(g graph, rules []rule) []string {
	var out []string
	for _, r := range rules {
		for _, pkg := range g.packages() {
			if !slices.Contains(r.from, "./...") && !matchAny(r.from, pkg) || matchAny(r.but, pkg) {
				continue
			}
			if r.must != "" && !slices.Contains(g[pkg], r.must) {
				out = append(out, fmt.Sprintf("%s: %s must import %s: %s", r.name, pkg, r.must, r.because))
			}
			for _, to := range g[pkg] {
				if matchAny(r.direct, to) {
					out = append(out, fmt.Sprintf("%s: %s must not import %s: %s", r.name, pkg, to, r.because))
				}
			}
			for to, chain := range g.reach(pkg) {
				foreign := r.only != nil && !g.own(to) && !g.standard(to) && !matchAny(r.only, to)
				if foreign || matchAny(r.never, to) && to != pkg {
					out = append(out, fmt.Sprintf("%s: %s must not be: %s", r.name, strings.Join(chain, " → "), r.because))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestArrows(t *testing.T) {
	g, err := load(os.DirFS("../.."))
	require.NoError(t, err)
	require.Contains(t, g, "internal/ident", "the module's packages were not found")
	require.Empty(t, broken(g, rules))
}

// A rule that no import could break would check nothing.
func TestEveryRuleCanBeBroken(t *testing.T) {
	const sqlite, pgx = "modernc.org/sqlite", "github.com/jackc/pgx/v5"
	tests := []struct {
		rule string
		tree map[string]string // package → its imports; ours have no full stop in the first element
	}{
		{"light", map[string]string{"receiver": "github.com/rs/zerolog"}},
		{"light", map[string]string{"signing": "internal/x", "internal/x": "golang.org/x/crypto/hkdf"}},
		{"receiving side", map[string]string{"receiver/receivertest": "internal/x", "internal/x": "sender", "sender": "fmt"}},
		{"sending side", map[string]string{"sender/console": "receiver", "receiver": "fmt"}},
		{"foundations", map[string]string{"backoff": "sender", "sender": "fmt"}},
		{"signing and backoff stand alone", map[string]string{"signing": "database/sql"}},
		{"internal", map[string]string{"internal/x": "dedup", "dedup": "fmt"}},
		{"dedup does not know its stores", map[string]string{"dedup": "dedup/memory", "dedup/memory": "fmt"}},
		{"the front door knows no store", map[string]string{".": "sender/sqlite", "sender/sqlite": "fmt"}},
		{"nobody stands on the front door", map[string]string{"sender/jobs": ".", ".": "fmt"}},
		{"sender knows none of its children", map[string]string{"sender": "sender/sqlite", "sender/sqlite": "fmt"}},
		{"filters stand alone", map[string]string{"sender/filter": "sender", "sender": "fmt"}},
		{"the parts of sender know neither the dispatcher nor each other", map[string]string{"sender/history": "sender/dispatch", "sender/dispatch": "fmt"}},
		{"the dispatcher knows no store", map[string]string{"sender/dispatch": "sender/memory", "sender/memory": "fmt"}},
		{"post knows neither dispatcher nor stores nor keys", map[string]string{"sender/internal/post": "sender/dispatch", "sender/dispatch": "fmt"}},
		{"rules know no store", map[string]string{"sender/rules": "sender/memory", "sender/memory": "fmt"}},
		{"stores of sender run its rules", map[string]string{"sender/memory": "fmt"}},
		{"receiver knows no store", map[string]string{"receiver": "dedup/sqlite", "dedup/sqlite": "fmt"}},
		{"stores of dedup implement dedup", map[string]string{"dedup/memory": "fmt"}},
		{"the console and the portal know no store", map[string]string{"sender/portal": "sender/memory"}},
		{"jobs do not know their stores", map[string]string{"sender/jobs": "sender/jobs/sqlite"}},
		{"stores of jobs implement jobs", map[string]string{"sender/jobs/memory": "fmt"}},
		{"stores of sender implement sender", map[string]string{"sender/memory": "fmt"}},
		{"pgx", map[string]string{"sender/feed": pgx + "/pgxpool"}},
		{"database drivers", map[string]string{"sender/sqlite": sqlite}},
		{"examples are not imported", map[string]string{"sender": "examples/x", "examples/x": "fmt"}},
		{"examples embed as anybody does", map[string]string{"examples/x": "internal/x", "internal/x": "fmt"}},
		{"web frameworks and metrics", map[string]string{"sender/feed": "github.com/danielgtaylor/huma/v2"}},
		{"assertions", map[string]string{"dedup/deduptest": "github.com/stretchr/testify/require"}},
		{"testing", map[string]string{"sender": "testing"}},
	}
	tried := map[string]bool{}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			tried[test.rule] = true
			g, err := load(treeOf(test.tree))
			require.NoError(t, err)
			var named []rule
			for _, r := range rules {
				if r.name == test.rule {
					named = append(named, r)
				}
			}
			require.Len(t, broken(g, named), 1)
		})
	}
	for _, r := range rules {
		require.True(t, tried[r.name], "rule %q has no case that breaks it", r.name)
	}
}

func TestWhatRulesLeaveAlone(t *testing.T) {
	tree := treeOf(map[string]string{
		"receiver":                   "golang.org/x/sync/errgroup",
		"sender/postgres":            "github.com/jackc/pgx/v5",
		"examples/quickstart":        "modernc.org/sqlite",
		"dedup/deduptest":            "testing",
		"sender/testdata/x":          "github.com/rs/zerolog",
		"internal/proof/bench/peers": "github.com/jackc/pgx/v5",
		"examples/other/nested":      "github.com/stretchr/testify",
	})
	tree["receiver/receiver_test.go"] = &fstest.MapFile{Data: []byte("package receiver_test\nimport _ \"modernc.org/sqlite\"\n")}
	tree["examples/other/go.mod"] = &fstest.MapFile{Data: []byte("module other\n")}
	g, err := load(tree)
	require.NoError(t, err)
	require.Len(t, g, 5)
	require.Empty(t, broken(g, slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.must != "" })))
}

func treeOf(imports map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for pkg, imported := range imports {
		if _, own := imports[imported]; own {
			imported = path.Join(module, imported)
		}
		tree[path.Join(pkg, "file.go")] = &fstest.MapFile{Data: fmt.Appendf(nil, "package p\n\nimport _ %q\n", imported)}
	}
	return tree
}
