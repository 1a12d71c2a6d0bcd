package defect

// orderOn runs the rules of a store about the order of an object's versions.
func orderOn(variant string) string { return "^TestStore$/^" + variant + "$/^order$" }

// ofOrder are defects in the choice of the process that holds a subscription.
var ofOrder = []Defect{
	{
		Name: "two processes hold one subscription, in memory",
		File: "sender/memory/claim.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "return sub.process != 0 && sub.process != w.Claim.By.Process && sub.inFlight(w.now) > 0", New: "return sub.process < 0",
	},
	{
		Name: "a subscription is held by whom all leases of it have ended, in memory",
		File: "sender/memory/claim.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "&& sub.inFlight(w.now) > 0", New: "&& len(sub.leased) > 0",
	},
	{
		Name: "who has claimed of a subscription is not stored, on SQLite",
		File: "sender/sqlite/heads.go", Tests: []string{"./sender/sqlite"}, Run: orderOn("immediate"),
		Old: "if h.owner != was.owner {", New: "if h.owner != was.owner && h.owner == 0 {",
	},
	{
		Name: "a subscription is free when one lease has ended, on SQLite",
		File: "sender/sqlite/owner.go", Tests: []string{"./sender/sqlite"}, Run: orderOn("immediate"),
		Old: "return last > b.now, err", New: "return last < 0, err",
	},
	{
		Name: "a released delivery stands behind the retries of its time, on SQLite",
		File: "sender/sqlite/release.go", Tests: []string{"./sender/sqlite"}, Run: orderOn("immediate"),
		Old: "created[event] = timeOf(at)", New: "created[event] = timeOf(0 * at)",
	},
	{
		Name: "a released delivery stands behind the retries of its time, on PostgreSQL",
		File: "sender/postgres/release.go", Tests: []string{"./sender/postgres"}, Run: orderOn("pgx_read_committed"),
		Old: "created[event] = at\n", New: "created[event] = 0 * at\n",
	},
	{
		Name: "what is committed late is expanded after later events about its object, on PostgreSQL",
		File: "sender/postgres/scan_from.go", Tests: []string{"./sender/postgres"}, Run: "^TestLateCommitsKeepTheOrderOfAnObject$",
		Old: "bound{f.next, open}", New: "bound{f.next, nil}",
	},
	{
		Name: "a released delivery stands behind those that a resume has let go on, on SQLite",
		File: "sender/sqlite/release.go", Tests: []string{"./sender/sqlite"}, Run: orderOn("immediate"),
		Old: "l.number == 1 && h.resumedTo >= 0", New: "l.number == 1 && h.resumedTo < 0",
	},
	{
		Name: "a released delivery stands behind those that a resume has let go on, on PostgreSQL",
		File: "sender/postgres/release.go", Tests: []string{"./sender/postgres"}, Run: orderOn("pgx_read_committed"),
		Old: "l.number == 1 && h.resumedTo >= 0", New: "l.number == 1 && h.resumedTo < 0",
	},
	{
		Name: "what others hold uses slots, on SQLite",
		File: "sender/sqlite/owner.go", Tests: []string{"./sender/sqlite"}, Run: orderOn("immediate"),
		Old: "d.owner IN (0, ?%d) OR d.leases_end", New: "d.owner IN (0, ?%d) OR d.owner <> 0 OR d.leases_end",
	},
	{
		Name: "who has claimed of a subscription is not stored, on PostgreSQL",
		File: "sender/postgres/heads.go", Tests: []string{"./sender/postgres"}, Run: orderOn("pgx_read_committed"),
		Old: "return h.owner != was.owner ||", New: "return h.owner == 0 && was.owner > 0 ||",
	},
	{
		Name: "a subscription is free when one lease has ended, on PostgreSQL",
		File: "sender/postgres/owner.go", Tests: []string{"./sender/postgres"}, Run: orderOn("pgx_read_committed"),
		Old: "first, last > b.now", New: "first, last < 0",
	},
	{
		Name: "what has just arrived is claimed though another process holds the subscription, on PostgreSQL",
		File: "sender/postgres/owner.go", Tests: []string{"./sender/postgres"}, Run: orderOn("pgx_read_committed"),
		Old: "if h.leased == 0 || h.owner == 0 ||", New: "if h.leased == 0 || h.owner == 0 || len(b.arrived[h]) > 0 ||",
	},
	{
		Name: "what others hold is due, on PostgreSQL",
		File: "sender/internal/processes/processes.go", Tests: []string{"./sender/postgres"}, Run: orderOn("pgx_read_committed"),
		Old: "if p.Process != process {", New: "if p.Process == 0 && process == 0 {",
	},
	{
		Name: "who holds a subscription is not told that something is due, on PostgreSQL",
		File: "sender/postgres/heads.go", Tests: []string{"./sender/postgres"}, Run: "TestWhoHoldsASubscriptionIsTold",
		Old: "b.madeDue = true", New: "b.madeDue = false",
	},
}
